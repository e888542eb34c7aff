#include "cli/view/device_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

api::TrainingJob job_of(std::vector<api::EnvVar> workers = {}) {
  api::TrainingJob job;
  job.spec.replica_specs.chief = api::ReplicaSpec{};
  job.spec.replica_specs.worker = api::ReplicaSpec{};
  job.spec.replica_specs.ps = api::ReplicaSpec{};
  if (!workers.empty()) job.spec.replica_specs.worker->container = api::Container{.env = std::move(workers)};
  return job;
}

TEST(DeviceText, HowItIsChosen) {
  struct Case {
    DeviceVariables around;
    bool with_cuda;
    const char* said;
  };
  for (const Case& c : {
           Case{{},
                true,
                "computes on a GPU where there is one that can be used, of several by its number among the "
                "members, "
                "else on "
                "processors (PACELINE_DEVICE is not set)"},
           Case{{"auto", "off"},
                true,
                "computes on a GPU where there is one that can be used, of several by its number among the "
                "members, "
                "else on "
                "processors (PACELINE_DEVICE=auto), without CUDA graphs (PACELINE_CUDA_GRAPHS=off)"},
           Case{{},
                false,
                "computes on processors: this program was built without CUDA (PACELINE_DEVICE is not set)"},
           Case{{"cpu", "off"}, true, "computes on processors (PACELINE_DEVICE=cpu)"},
           Case{{"cuda", nullptr},
                true,
                "computes on a GPU, or the member fails; of several by its number among the members "
                "(PACELINE_DEVICE=cuda)"},
           Case{{"cuda:2", nullptr},
                false,
                "computes on GPU 2, which this program, built without CUDA, can't use, or the member fails "
                "(PACELINE_DEVICE=cuda:2)"},
       }) {
    EXPECT_THAT(device_lines(job_of(), c.around, c.with_cuda), ElementsAre(c.said));
  }
}

TEST(DeviceText, AContainersOwnVariableComesFirst) {
  EXPECT_THAT(device_lines(job_of({{"PACELINE_DEVICE", "cuda:1"}}), {"cpu", nullptr}, true),
              ElementsAre("chief: computes on processors (PACELINE_DEVICE=cpu)",
                          "worker: computes on GPU 1, or the member fails (PACELINE_DEVICE=cuda:1)"));
  EXPECT_THAT(device_lines(job_of({{"PACELINE_DEVICE", "cpu"}}), {"cpu", nullptr}, true),
              ElementsAre("computes on processors (PACELINE_DEVICE=cpu)"));
}

// Where there is one that some member would have taken.
TEST(DeviceText, AnIdleGpuIsNoted) {
  EXPECT_THAT(
      idle_gpu_note(job_of(), {}, false, true),
      StartsWith("warning: there is a GPU that can't be used: this program was built without CUDA; "));
  EXPECT_EQ(idle_gpu_note(job_of(), {}, false, false), "");
  EXPECT_EQ(idle_gpu_note(job_of(), {}, true, true), "");
  EXPECT_EQ(idle_gpu_note(job_of(), {"cpu", nullptr}, false, true), "");
  EXPECT_EQ(idle_gpu_note(job_of(), {"cuda", nullptr}, false, true), "") << "its member says why it fails";
  EXPECT_THAT(idle_gpu_note(job_of({{"PACELINE_DEVICE", "auto"}}), {"cpu", nullptr}, false, true),
              HasSubstr("scripts/setup --cuda"));
}

TEST(ComputingNote, NamesAGpuAndWarnsOfOneThatNobodyTakes) {
  EXPECT_EQ(computing_note(job_of(), {}, "NVIDIA H200", true, ""), "computes on NVIDIA H200");
  EXPECT_EQ(computing_note(job_of(), {}, "processors", true, ""),
            "warning: computes on processors, though this machine has a GPU; the members' logs say why");
  EXPECT_EQ(computing_note(job_of(), {}, "processors", false, ""), "");
  EXPECT_EQ(computing_note(job_of(), {"cpu", nullptr}, "processors", true, ""), "");
  EXPECT_EQ(computing_note(job_of(), {}, "", true, ""), "");
  EXPECT_EQ(computing_note(job_of(), {}, "NVIDIA H200", true, "processors"),
            "computes on NVIDIA H200; before it was resumed, on processors");
  EXPECT_EQ(computing_note(job_of(), {}, "processors", false, "NVIDIA H200"),
            "computes on processors; before it was resumed, on NVIDIA H200");
  EXPECT_EQ(computing_note(job_of(), {}, "processors", true, "NVIDIA H200"),
            "warning: computes on processors, though this machine has a GPU; the members' logs say why; "
            "before it was resumed, on NVIDIA H200");
}

api::MemberStatus member_of(Role role, std::int64_t step, const char* gpu = nullptr) {
  api::MemberStatus member{.role = role, .step = step};
  if (gpu != nullptr) member.telemetry.gpu = GpuTelemetry{.name = gpu};
  return member;
}

TEST(TrainingKinds, OfThoseThatTrainOnceEachHasTold) {
  const api::MemberStatus server = member_of(Role::kServer, 7),
                          evaluator = member_of(Role::kEvaluator, 7, "NVIDIA H100");
  EXPECT_EQ(training_kinds({}), "");
  EXPECT_EQ(training_kinds({member_of(Role::kChief, 3), member_of(Role::kWorker, 0), server}), "");
  EXPECT_EQ(training_kinds({member_of(Role::kChief, 3), member_of(Role::kWorker, 1), server, evaluator}),
            "processors");
  EXPECT_EQ(training_kinds({member_of(Role::kChief, 3), member_of(Role::kWorker, 0, "NVIDIA H200"),
                            member_of(Role::kWorker, 2, "NVIDIA H200")}),
            "NVIDIA H200, processors");
}

TEST(DeviceText, WhereMembersComputed) {
  const api::MemberStatus server = member_of(Role::kServer, 7), evaluator = member_of(Role::kEvaluator, 7);
  EXPECT_EQ(device_text({}), "");
  EXPECT_EQ(device_text({member_of(Role::kWorker, 0), server, evaluator}), "") << "nobody knows it yet";
  EXPECT_EQ(device_text({member_of(Role::kChief, 3), member_of(Role::kWorker, 0), server}), "processors");
  EXPECT_EQ(device_text({member_of(Role::kWorker, 3, "NVIDIA H200"),
                         member_of(Role::kWorker, 0, "NVIDIA H200"), evaluator}),
            "NVIDIA H200");
  EXPECT_EQ(device_text({member_of(Role::kChief, 3, "NVIDIA H200"), member_of(Role::kWorker, 3),
                         member_of(Role::kWorker, 3, "NVIDIA H200")}),
            "NVIDIA H200 (2 members), processors (1 member)");
  EXPECT_EQ(device_text({member_of(Role::kChief, 3), member_of(Role::kEvaluator, 0, "NVIDIA H200")}),
            "processors (1 member), NVIDIA H200 (1 member)");
}

}  // namespace
}  // namespace paceline::cli

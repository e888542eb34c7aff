// apply and delete.

#include "tests/unit/cli/cluster/cluster_fixture.h"

namespace paceline::cli {
namespace {

using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;

ApplyFile file_of(kube::Json object, const std::string& path = "job.yaml") {
  return {path, object.dump()};
}

// Answers each change of a job by the server's refusal of a field, unless it is forced.
FakeApiServer::Faults refusing(int code, const std::string& reason, const kube::Json& cause) {
  return [=](const kube::Request& request) {
    FakeApiServer::Fault fault;
    if (request.method == kube::Method::kPatch && request.path.find("force=true") == std::string::npos)
      fault.answer = kube::Response{
          code, refusal(code, reason, "refused", {{"causes", kube::Json::array({cause})}}).dump(),
          std::nullopt, "application/json"};
    return fault;
  };
}

TEST_F(ClusterTest, ApplyCreatesThenLeavesThenChanges) {
  kube::Json job = job_object();
  job["status"] = {{"phase", "Running"}};
  job["metadata"]["uid"] = "of another cluster";
  ASSERT_TRUE(apply_jobs(call_, {file_of(job)}, {}).ok());
  EXPECT_EQ(
      server_.requests(
          "PATCH /apis/paceline.dev/v1alpha1/namespaces/team-a/trainingjobs/digits?fieldManager=paceline"),
      1);
  EXPECT_EQ(server_.requests("force=true"), 0);
  const auto stored = server_.find("trainingjobs", "team-a", "digits");
  ASSERT_TRUE(stored);
  EXPECT_FALSE(stored->contains("status"));
  ASSERT_TRUE(apply_jobs(call_, {file_of(job)}, {}).ok());
  job["spec"]["runPolicy"]["suspend"] = true;
  ASSERT_TRUE(apply_jobs(call_, {file_of(job)}, {}).ok());
  EXPECT_EQ(out_.str(),
            "trainingjob.paceline.dev/digits created\n"
            "trainingjob.paceline.dev/digits unchanged\n"
            "trainingjob.paceline.dev/digits configured\n");
}

TEST_F(ClusterTest, ApplyToAJobThatIsBeingDeletedIsNoSuccess) {
  kube::Json going = job_object("a");
  going["metadata"]["deletionTimestamp"] = "2026-01-31T12:00:00Z";  // cascade: foreground, or a finalizer
  add_job(going);
  const absl::Status status =
      apply_jobs(call_, {file_of(job_object("a"), "a.yaml"), file_of(job_object("b"), "b.yaml")}, {});
  EXPECT_EQ(status.message(),
            "a.yaml: job team-a/a is being deleted, and what is applied to it goes with it; `paceline delete "
            "a -n team-a` waits until it is gone; then apply again");
  EXPECT_EQ(out_.str(), "trainingjob.paceline.dev/b created\n");
}

TEST_F(ClusterTest, ApplyTakesTheFilesNamespace) {
  kube::Json job = job_object();
  job["metadata"]["namespace"] = "team-b";
  ASSERT_TRUE(apply_jobs(call_, {file_of(job)}, {}).ok());
  EXPECT_TRUE(server_.find("trainingjobs", "team-b", "digits"));
  const absl::Status status = apply_jobs(call_, {file_of(job)}, {.ns_given = true});
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("metadata.namespace is \"team-b\", and -n says \"team-a\""));
}

TEST_F(ClusterTest, ApplyGoesOnAfterAFailure) {
  answer("/trainingjobs/a", 403, refusal(403, "Forbidden", "no"));
  const absl::Status status =
      apply_jobs(call_, {file_of(job_object("a"), "a.yaml"), file_of(job_object("b"), "b.yaml")}, {});
  EXPECT_TRUE(absl::IsPermissionDenied(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("a.yaml: you may not apply job team-a/a"));
  EXPECT_EQ(out_.str(), "trainingjob.paceline.dev/b created\n");
}

TEST_F(ClusterTest, ADryRunIsTheServers) {
  EXPECT_EQ(printed(apply_jobs(call_, {file_of(job_object())}, {.dry_run = true})),
            "trainingjob.paceline.dev/digits created (server dry run)\n");
  EXPECT_EQ(server_.requests("dryRun=All"), 1);
}

TEST_F(ClusterTest, ConflictsNameTheFields) {
  add_job(job_object());
  server_.set_faults(refusing(409, "Conflict",
                              {{"reason", "FieldManagerConflict"},
                               {"message", "conflict with \"kubectl\""},
                               {"field", ".spec.runPolicy.suspend"}}));
  const absl::Status status = apply_jobs(call_, {file_of(job_object())}, {});
  EXPECT_TRUE(absl::IsAborted(status));
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr("\n  spec.runPolicy.suspend: conflict with \"kubectl\"\n"),
                    HasSubstr("--force-conflicts")));
  EXPECT_TRUE(apply_jobs(call_, {file_of(job_object())}, {.force = true}).ok());
}

TEST_F(ClusterTest, ARefusedEditNamesWhatMayNotChange) {
  add_job(job_object());
  server_.set_faults(refusing(422, "Invalid",
                              {{"reason", "FieldValueInvalid"},
                               {"message", "Invalid value: it stays as it was"},
                               {"field", "spec.training"}}));
  kube::Json job = job_object();
  job["spec"]["training"]["steps"] = 300;
  const absl::Status status = apply_jobs(call_, {file_of(job)}, {});
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("the API server refuses it:\n  spec.training: Invalid value: it stays as it was"),
            HasSubstr("\n  spec.training.steps may not be edited from \"200\" to \"300\"; make a new job"),
            HasSubstr("paceline delete digits -n team-a")));
}

TEST_F(ClusterTest, DeleteWaitsUntilTheJobIsGone) {
  add_job(job_object());
  int looks = 0;
  server_.set_faults([&](const kube::Request& request) {
    FakeApiServer::Fault fault;
    if (request.method == kube::Method::kDelete)
      fault.answer = kube::Response{200, "{}", std::nullopt, "application/json"};  // a finalizer holds it
    return fault;
  });
  on_pause_ = [&] {
    if (++looks == 3) server_.erase("trainingjobs", "team-a", "digits");
  };
  EXPECT_EQ(printed(delete_jobs(call_, {.names = {"digits"}})), "trainingjob.paceline.dev/digits deleted\n");
  EXPECT_EQ(looks, 3);
}

TEST_F(ClusterTest, DeleteGivesUpAfterItsTime) {
  add_job(job_object());
  kube::Json job = job_object();
  job["metadata"]["uid"] = "uid-1";
  answer("/trainingjobs/digits", 200, job);
  const absl::Status status = delete_jobs(call_, {.names = {"digits"}, .timeout = 30s});
  EXPECT_TRUE(absl::IsDeadlineExceeded(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("metadata.finalizers"));
  EXPECT_EQ(clock_.now(), TimePoint(30s));
}

TEST_F(ClusterTest, AnotherJobOfThatNameIsNotWaitedFor) {
  add_job(job_object());
  server_.set_faults([&](const kube::Request& request) {
    if (request.method == kube::Method::kDelete) {
      server_.erase("trainingjobs", "team-a", "digits");
      server_.create("trainingjobs", "team-a", job_object());
      return FakeApiServer::Fault{.answer = kube::Response{200, "{}", std::nullopt, "application/json"}};
    }
    return FakeApiServer::Fault{};
  });
  EXPECT_TRUE(delete_jobs(call_, {.names = {"digits"}}).ok());
}

TEST_F(ClusterTest, DeleteOfFinishedJobsAlone) {
  add_job(job_object("a", "Succeeded"));
  add_job(job_object("b", "Running"));
  add_job(job_object("c", "Failed"), "team-b");
  call_.all_namespaces = true;
  EXPECT_EQ(printed(delete_jobs(call_, {.finished = true, .wait = false, .cascade = "foreground"})),
            "trainingjob.paceline.dev/a in namespace team-a deleted\ntrainingjob.paceline.dev/c in namespace "
            "team-b deleted\n");
  EXPECT_TRUE(server_.find("trainingjobs", "team-a", "b"));
}

TEST_F(ClusterTest, DeleteOfFinishedJobsLeavesTheirSuccessors) {
  add_job(job_object("digits", "Succeeded"));
  bool replaced = false;
  server_.set_faults([&](const kube::Request& request) {
    if (!replaced && request.path.ends_with("/digits")) {
      replaced = true;
      server_.erase("trainingjobs", "team-a", "digits");
      server_.create("trainingjobs", "team-a", job_object("digits", "Running"));
    }
    return FakeApiServer::Fault{};
  });
  EXPECT_TRUE(absl::IsAborted(delete_jobs(call_, {.finished = true})));
  EXPECT_TRUE(server_.find("trainingjobs", "team-a", "digits"));
}

TEST_F(ClusterTest, DeleteOfWhatIsNotThereSaysSoAndGoesOn) {
  add_job(job_object("b"));
  const absl::Status status = delete_jobs(call_, {.names = {"a", "b"}});
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(out_.str(), "trainingjob.paceline.dev/b deleted\n");
}

}  // namespace
}  // namespace paceline::cli

#include "controller/plan/pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "tests/unit/controller/plan/world.h"

namespace paceline::plan {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

TEST(PodsTest, TheChiefComesFirstAndLeads) {
  const auto job = make_job(1, 2);
  const auto slots = desired_slots(job);
  ASSERT_EQ(slots.size(), 3u);
  EXPECT_EQ(slots[0].role, Role::kChief);
  EXPECT_EQ(slots[2].index, 1);
  EXPECT_EQ(leader_slot(job).role, Role::kChief);
  EXPECT_EQ(leader_slot(make_job(0, 2)).role, Role::kWorker);
  EXPECT_EQ(leader_slot(make_job(0, 2)).index, 0);
}

TEST(PodsTest, TheBuiltInWorkersPod) {
  const Observed world = make_world(1, 3);
  const cluster::PodSpec spec = pod_spec(world, desired_slots(world.job)[2]);
  EXPECT_EQ(spec.name, "fashion-worker-1-0");
  EXPECT_EQ(spec.ns, "default");
  EXPECT_EQ(spec.job, "fashion");
  EXPECT_EQ(spec.job_uid, "job-uid");
  EXPECT_EQ(spec.threads, 2) << "8 cores for 4 pods";
  EXPECT_THAT(spec.command, ElementsAre("/opt/paceline-worker"));
  EXPECT_THAT(spec.env,
              ElementsAre(Pair("PACELINE_ATTEMPT", "0"), Pair("PACELINE_COORDINATOR", "127.0.0.1:1234"),
                          Pair("PACELINE_INCARNATION", "0"), Pair("PACELINE_INDEX", "1"),
                          Pair("PACELINE_JOB", "default/fashion"), Pair("PACELINE_POD", "fashion-worker-1-0"),
                          Pair("PACELINE_ROLE", "worker"), Pair("PACELINE_SLOT", "2"),
                          Pair("PACELINE_THREADS", "2"), Pair("PACELINE_TOKEN", "secret token")));
}

// Of a machine's GPUs each takes its own.
TEST(PodsTest, MembersThatComputeHaveNumbersOfTheirOwn) {
  Observed world = make_world(1, 2);
  world.job.spec.replica_specs.ps = api::ReplicaSpec{2, {}, {}};
  world.job.spec.replica_specs.evaluator = api::ReplicaSpec{1, {}, {}};
  std::vector<std::string> slots;
  for (const Slot& slot : desired_slots(world.job)) {
    const cluster::PodSpec spec = pod_spec(world, slot);
    const auto found = spec.env.find("PACELINE_SLOT");
    slots.push_back(found == spec.env.end() ? "" : found->second);
  }
  EXPECT_THAT(slots, ElementsAre("0", "1", "2", "", "", "3"));
}

TEST(PodsTest, Threads) {
  struct Case {
    int cores, workers;
    double limit, request;
    int threads;
  };
  for (const Case& c :
       {Case{8, 4, 0, 0, 2}, Case{2, 16, 0, 0, 1}, Case{7, 2, 0, 0, 3}, Case{8, 4, 2, 0, 2},
        Case{8, 4, 0.5, 0, 1}, Case{8, 4, 2.5, 0, 3}, Case{0, 1, 0, 0, 0}, Case{8, 1, 1e300, 0, 4096},
        Case{1, 4, 0, 4, 4}, Case{1, 4, 0, 1.5, 2}, Case{1, 4, 2, 4, 2}, Case{1, 4, 4, 2, 4}}) {
    Observed world = make_world(0, c.workers);
    world.limits.cores = c.cores;
    if (c.limit > 0 || c.request > 0) {
      api::Container& container = world.job.spec.replica_specs.worker->container.emplace();
      container.cpu_limit = c.limit;
      container.cpu_request = c.request;
    }
    EXPECT_EQ(pod_spec(world, desired_slots(world.job)[0]).threads, c.threads)
        << c.cores << " cores, limit " << c.limit << ", request " << c.request;
  }
}

TEST(PodsTest, MembersThatTrainAreToldWhatTheyShareOfOneMachinesMemory) {
  Observed world = make_world(1, 2);
  world.job.spec.replica_specs.ps = api::ReplicaSpec{1, {}, {}};
  world.job.spec.replica_specs.evaluator = api::ReplicaSpec{1, {}, {}};
  const auto told = [&] {
    std::vector<std::string> members;
    for (const Slot& slot : desired_slots(world.job)) {
      const cluster::PodSpec spec = pod_spec(world, slot);
      const auto free = spec.env.find("PACELINE_HOST_FREE_MIB");
      members.push_back(
          free == spec.env.end() ? "" : str_cat(free->second, "/", spec.env.at("PACELINE_HOST_MEMBERS")));
    }
    return members;
  };
  EXPECT_THAT(told(), ElementsAre("", "", "", "", "")) << "on a cluster nobody knows";
  world.limits.free_mib = 8000;
  EXPECT_THAT(told(), ElementsAre("8000/3", "8000/3", "8000/3", "", ""));
}

TEST(PodsTest, EveryPodHasTheJobsPriorityClass) {
  Observed world = make_world(1, 1);
  EXPECT_EQ(pod_spec(world, desired_slots(world.job)[0]).priority_class, "");
  world.job.spec.run_policy.scheduling_policy.priority_class = "high";
  for (const Slot& slot : desired_slots(world.job)) EXPECT_EQ(pod_spec(world, slot).priority_class, "high");
}

TEST(PodsTest, RankZeroOfATrainingHasTimeToSaveWhoeverEndsIt) {
  Observed world = make_world(0, 2);
  const auto grace = [&](std::size_t slot) {
    return pod_spec(world, desired_slots(world.job)[slot]).save_grace;
  };
  EXPECT_EQ(grace(0), world.limits.save_grace);
  EXPECT_EQ(grace(1), Duration::zero());
  world.job.spec.training.reset();
  EXPECT_EQ(grace(0), Duration::zero()) << "its own program: Kubernetes' 30 s, or what the template says";
}

TEST(PodsTest, TheTemplatesCommandPassesThrough) {
  struct Case {
    std::vector<std::string> command, args, expected;
  };
  for (const Case& c :
       {Case{{}, {}, {"/opt/paceline-worker"}}, Case{{}, {"-v"}, {"/opt/paceline-worker", "-v"}},
        Case{{"python3"}, {"a.py"}, {"python3", "a.py"}}, Case{{"/bin/x"}, {}, {"/bin/x"}},
        Case{{"./x", "1"}, {"2"}, {"/jobs/./x", "1", "2"}}, Case{{"bin/x"}, {}, {"/jobs/bin/x"}}}) {
    Observed world = make_world(0, 1);
    world.limits.base_folder = "/jobs";
    api::Container& container = world.job.spec.replica_specs.worker->container.emplace();
    container.command = c.command;
    container.args = c.args;
    container.env = {{"OMP_NUM_THREADS", "3"}, {"PACELINE_TOKEN", "forged"}, {"PACELINE_INDEX", "9"}};
    const cluster::PodSpec spec = pod_spec(world, desired_slots(world.job)[0]);
    EXPECT_EQ(spec.command, c.expected);
    EXPECT_EQ(spec.env.at("OMP_NUM_THREADS"), "3");
    EXPECT_EQ(spec.env.at("PACELINE_TOKEN"), "secret token") << "ours can't be replaced";
    EXPECT_EQ(spec.env.at("PACELINE_INDEX"), "0");
  }
}

TEST(PodsTest, ANameTellsItsAttempt) {
  const api::TrainingJob job = make_job(1, 1);
  EXPECT_EQ(attempt_in(pod_name(job, Role::kWorker, 3, 17)), 17);
  EXPECT_EQ(attempt_in("-9"), 9) << "the suffix of such names";
  for (const char* name : {"", "9", "digits", "digits-", "digits-worker-0-x", "digits-worker-0-1x", "a--",
                           "a-99999999999999999999"})
    EXPECT_FALSE(attempt_in(name)) << name;
}

}  // namespace
}  // namespace paceline::plan

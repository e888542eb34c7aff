#include "controller/reconcile/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "controller/plan/kubernetes_limits.h"
#include "controller/plan/rules.h"
#include "tests/unit/controller/plan/world.h"

namespace paceline::reconcile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using enum api::RestartPolicy;

const WallTime kNow(std::chrono::hours(1000));

std::map<std::string, std::string> answers(const api::TrainingJob& job) {
  std::map<std::string, std::string> texts;
  for (const WhatIf& each : if_a_member_dies(job, plan::kubernetes_limits(), kNow))
    texts[member_name(each.role, each.index)] = each.text;
  return texts;
}

api::TrainingJob ring(api::RestartPolicy policy, int workers = 3) {
  api::TrainingJob job = plan::make_job(1, workers);
  job.spec.replica_specs.chief->restart_policy = policy;
  if (workers > 0) job.spec.replica_specs.worker->restart_policy = policy;
  return job;
}

TEST(WhatIfTest, ARingThatReplacesItsMembersGoesOn) {
  EXPECT_THAT(
      answers(ring(kOnFailure)),
      ElementsAre(
          Pair("chief-0", "the 3 others go on, and no step is lost; another chief-0 comes at once"),
          Pair("worker-0", "the 3 others go on, and no step is lost; another worker-0 comes at once")));
}

TEST(WhatIfTest, TheNextRestartInARowComesAfterTheBackOff) {
  api::TrainingJob job = ring(kOnFailure);
  job.status.restarts.replacements = {
      {.role = Role::kWorker, .index = 0, .count = 1, .in_a_row = 1, .last = kNow}};
  EXPECT_THAT(answers(job)["worker-0"], ::testing::EndsWith("another worker-0 comes in 1.0 s"));
}

TEST(WhatIfTest, ARingThatReplacesNobodyEnds) {
  EXPECT_THAT(answers(ring(kNever))["worker-0"], ::testing::StartsWith("the job fails"));
  EXPECT_THAT(answers(ring(kNever))["worker-0"], ::testing::HasSubstr("restartPolicy OnFailure"));
}

TEST(WhatIfTest, ARingGoesOnWithFewerWhereThatIsAllowed) {
  api::TrainingJob job = ring(kNever);
  job.spec.replica_specs.worker->min_replicas = 2;
  EXPECT_EQ(answers(job)["worker-0"], "the 3 others go on, and no step is lost; nobody takes its place");
}

TEST(WhatIfTest, TooFewWaitForTheNextOne) {
  api::TrainingJob job = ring(kOnFailure, 1);
  job.spec.replica_specs.worker->min_replicas = 2;
  job.spec.replica_specs.worker->replicas = 2;
  EXPECT_EQ(answers(job)["worker-0"],
            "the 2 others go on, and no step is lost; another worker-0 comes at once");
  job.spec.replica_specs.worker->min_replicas = 3;
  EXPECT_EQ(answers(job)["worker-0"],
            "the 2 others wait with what they have trained; another worker-0 comes at once");
}

TEST(WhatIfTest, AMemberThatStandsByTakesThePlace) {
  api::TrainingJob job = ring(kOnFailure);
  job.spec.replica_specs.worker->standby = 1;
  EXPECT_EQ(answers(job)["worker-0"],
            "one that stands by takes its place, and no step is lost; another worker-0 comes at once");
}

TEST(WhatIfTest, TheScopeOfTheJobBeginsAgain) {
  api::TrainingJob job = ring(kOnFailure);
  job.spec.replica_specs.worker->restart_scope = api::RestartScope::kJob;
  EXPECT_EQ(answers(job)["worker-0"],
            "all members begin again at once, from step 0: it makes no checkpoints");
  job.spec.checkpoint.every_steps = 100;
  EXPECT_EQ(answers(job)["worker-0"], "all members begin again at once, from the newest checkpoint");
}

TEST(WhatIfTest, AMemberThatStandsByHasNoStateWhereTheOnlyOneThatTrainsDies) {
  api::TrainingJob job = plan::make_job(0, 1);
  job.spec.replica_specs.worker->restart_policy = kOnFailure;
  job.spec.replica_specs.worker->standby = 1;
  EXPECT_EQ(answers(job)["worker-0"],
            "one that stands by takes its place, from step 0: it makes no checkpoints; another worker-0 "
            "comes at once");
}

TEST(WhatIfTest, MembersThatAreLostForGoodAreNotLeft) {
  api::TrainingJob job = ring(kNever);
  job.spec.replica_specs.worker->min_replicas = 3;
  job.status.phase = api::Phase::kRunning;
  job.status.view.size = 3;
  job.status.members = {{.role = Role::kWorker, .index = 0, .phase = plan::kLostPhase}};
  const auto texts = answers(job);
  EXPECT_FALSE(texts.contains("worker-0"));
  EXPECT_THAT(texts.at("worker-1"), ::testing::StartsWith("the job fails"));
}

TEST(WhatIfTest, ABudgetThatIsUsedUpIsTheEnd) {
  api::TrainingJob job = ring(kOnFailure);
  job.spec.run_policy.backoff_limit = 0;
  EXPECT_EQ(answers(job)["worker-0"], "the job fails (BackoffLimitExceeded)");
}

TEST(WhatIfTest, OneAloneGoesOnFromTheCheckpoint) {
  EXPECT_EQ(answers(ring(kOnFailure, 0))["chief-0"],
            "training goes on, from step 0: it makes no checkpoints; another chief-0 comes at once");
}

TEST(WhatIfTest, ServersAreMissedAndSpareWorkersAreNot) {
  api::TrainingJob job = plan::make_job_with_servers(3, 2, 1);
  job.spec.strategy.synchronization = api::Synchronization::kAsynchronous;
  auto& roles = job.spec.replica_specs;
  for (auto* const role : {&roles.chief, &roles.worker, &roles.ps, &roles.evaluator})
    (*role)->restart_policy = kOnFailure;
  job.spec.checkpoint.every_steps = 100;
  const auto texts = answers(job);
  EXPECT_EQ(texts.at("ps-0"), "all members begin again at once, from the newest checkpoint");
  EXPECT_EQ(texts.at("worker-0"), "the 3 others go on; nobody takes its place");
  EXPECT_EQ(texts.at("evaluator-0"), "training goes on; another evaluator-0 comes at once");
}

TEST(WhatIfTest, AJobThatHasEndedLosesNobody) {
  api::TrainingJob job = ring(kOnFailure);
  job.status.phase = api::Phase::kSucceeded;
  EXPECT_THAT(if_a_member_dies(job, plan::kubernetes_limits(), {}), IsEmpty());
}

TEST(WhatIfTest, TheLinesStandBelowEachOther) {
  EXPECT_THAT(what_if_lines({{Role::kChief, 0, "a"}, {Role::kWorker, 0, "b"}}),
              ElementsAre("If a member died now:", "  chief-0   a", "  worker-0  b"));
  EXPECT_THAT(what_if_lines({}), IsEmpty());
}

}  // namespace
}  // namespace paceline::reconcile

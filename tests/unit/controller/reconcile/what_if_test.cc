#include "controller/reconcile/what_if.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>

#include "controller/plan/kubernetes_limits.h"
#include "controller/plan/rules.h"
#include "tests/unit/controller/plan/world.h"

namespace paceline::reconcile {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Key;
using enum api::RestartPolicy;
using enum WhatIf::Then;
using From = WhatIf::From;

const WallTime kNow(std::chrono::hours(1000));
constexpr Duration kAtOnce{};
constexpr auto kNobody = std::nullopt;

std::map<std::string, WhatIf> answers(const api::TrainingJob& job) {
  std::map<std::string, WhatIf> all;
  for (const WhatIf& each : if_a_member_dies(job, plan::kubernetes_limits(), kNow))
    all[member_name(each.role, each.index)] = each;
  return all;
}

// If worker-0 died.
WhatIf answer(const api::TrainingJob& job) {
  return answers(job).at("worker-0");
}

WhatIf of_worker(WhatIf::Then then, int left, std::optional<From> from, std::optional<Duration> again) {
  return {.role = Role::kWorker, .index = 0, .then = then, .from = from, .left = left, .again = again};
}

api::TrainingJob ring(api::RestartPolicy policy, int workers = 3) {
  api::TrainingJob job = plan::make_job(1, workers);
  job.spec.replica_specs.chief->restart_policy = policy;
  if (workers > 0) job.spec.replica_specs.worker->restart_policy = policy;
  return job;
}

TEST(WhatIfTest, ARingThatReplacesItsMembersGoesOn) {
  const auto all = answers(ring(kOnFailure));
  EXPECT_THAT(all, ElementsAre(Key("chief-0"), Key("worker-0")));
  WhatIf expected = of_worker(kOthersGoOn, 3, From::kHere, kAtOnce);
  EXPECT_EQ(all.at("worker-0"), expected);
  expected.role = Role::kChief;
  EXPECT_EQ(all.at("chief-0"), expected);
}

TEST(WhatIfTest, TheNextRestartInARowComesAfterTheBackOff) {
  api::TrainingJob job = ring(kOnFailure);
  job.status.restarts.replacements = {
      {.role = Role::kWorker, .index = 0, .count = 1, .in_a_row = 1, .last = kNow}};
  EXPECT_EQ(answer(job).again, Duration(1s));
}

TEST(WhatIfTest, ARingThatReplacesNobodyEnds) {
  const WhatIf end = answer(ring(kNever));
  EXPECT_EQ(end.then, kJobFails);
  EXPECT_TRUE(end.may_be_replaced);
  EXPECT_FALSE(end.may_begin_again);
}

TEST(WhatIfTest, ARingGoesOnWithFewerWhereThatIsAllowed) {
  api::TrainingJob job = ring(kNever);
  job.spec.replica_specs.worker->min_replicas = 2;
  EXPECT_EQ(answer(job), of_worker(kOthersGoOn, 3, From::kHere, kNobody));
}

TEST(WhatIfTest, OneThatStandsByIsNotSaidToBeNobody) {
  api::TrainingJob job = ring(kNever);
  job.spec.replica_specs.worker->standby = 1;
  const WhatIf told = answer(job);
  ASSERT_EQ(told.then, kStandbyTakesPlace);
  EXPECT_EQ(told.again, kNobody);
  EXPECT_EQ(text_of(told).find("nobody"), std::string::npos) << text_of(told);
}

TEST(WhatIfTest, TooFewWaitForTheNextOne) {
  api::TrainingJob job = ring(kOnFailure, 1);
  job.spec.replica_specs.worker->min_replicas = 2;
  job.spec.replica_specs.worker->replicas = 2;
  EXPECT_EQ(answer(job), of_worker(kOthersGoOn, 2, From::kHere, kAtOnce));
  job.spec.replica_specs.worker->min_replicas = 3;
  EXPECT_EQ(answer(job), of_worker(kOthersWait, 2, kNobody, kAtOnce));
}

TEST(WhatIfTest, AMemberThatStandsByTakesThePlace) {
  api::TrainingJob job = ring(kOnFailure);
  job.spec.replica_specs.worker->standby = 1;
  EXPECT_EQ(answer(job), of_worker(kStandbyTakesPlace, 3, From::kHere, kAtOnce));
}

TEST(WhatIfTest, OneThatTrainsIsAskedAboutWhereTheFirstOfItsRoleStandsBy) {
  api::TrainingJob job = ring(kOnFailure);
  job.spec.replica_specs.worker->standby = 1;
  job.status.phase = api::Phase::kRunning;
  job.status.view.size = 4;
  job.status.members = {{.role = Role::kChief, .index = 0, .rank = 0, .phase = "training"},
                        {.role = Role::kWorker, .index = 0, .phase = "standby"},
                        {.role = Role::kWorker, .index = 1, .rank = 1, .phase = "training"}};
  const auto all = answers(job);
  EXPECT_THAT(all, ElementsAre(Key("chief-0"), Key("worker-1")));
  EXPECT_EQ(all.at("worker-1").then, kStandbyTakesPlace);
}

TEST(WhatIfTest, AMemberThatNobodyReplacesEndsTheJobOnceNobodyStandsBy) {
  api::TrainingJob job = ring(kNever);
  job.spec.replica_specs.worker->standby = 1;
  EXPECT_EQ(answer(job), of_worker(kStandbyTakesPlace, 3, From::kHere, kNobody));
  job.status.phase = api::Phase::kRunning;
  job.status.view.size = 4;
  job.status.members = {{.role = Role::kWorker, .index = 1, .phase = plan::kLostPhase}};
  EXPECT_EQ(answer(job).then, kJobFails);
  job.spec.replica_specs.worker->min_replicas = 2;
  EXPECT_EQ(answer(job), of_worker(kOthersGoOn, 3, From::kHere, kNobody));
}

TEST(WhatIfTest, TheScopeOfTheJobBeginsAgain) {
  api::TrainingJob job = ring(kOnFailure);
  job.spec.replica_specs.worker->restart_scope = api::RestartScope::kJob;
  EXPECT_EQ(answer(job), of_worker(kAllBeginAgain, 3, From::kStepZero, kAtOnce));
  job.spec.checkpoint.every_steps = 100;
  EXPECT_EQ(answer(job), of_worker(kAllBeginAgain, 3, From::kCheckpoint, kAtOnce));
}

TEST(WhatIfTest, AMemberThatStandsByHasNoStateWhereTheOnlyOneThatTrainsDies) {
  api::TrainingJob job = plan::make_job(0, 1);
  job.spec.replica_specs.worker->restart_policy = kOnFailure;
  job.spec.replica_specs.worker->standby = 1;
  EXPECT_EQ(answer(job), of_worker(kStandbyTakesPlace, 0, From::kStepZero, kAtOnce));
}

TEST(WhatIfTest, MembersThatAreLostForGoodAreNotLeft) {
  api::TrainingJob job = ring(kNever);
  job.spec.replica_specs.worker->min_replicas = 3;
  job.status.phase = api::Phase::kRunning;
  job.status.view.size = 3;
  job.status.members = {{.role = Role::kWorker, .index = 0, .phase = plan::kLostPhase}};
  const auto all = answers(job);
  EXPECT_FALSE(all.contains("worker-0"));
  EXPECT_EQ(all.at("worker-1").then, kJobFails);
}

TEST(WhatIfTest, ABudgetThatIsUsedUpIsTheEnd) {
  api::TrainingJob job = ring(kOnFailure);
  job.spec.run_policy.backoff_limit = 0;
  const WhatIf end = answer(job);
  EXPECT_EQ(end.then, kJobFails);
  EXPECT_EQ(end.reason, "BackoffLimitExceeded");
  EXPECT_FALSE(end.may_be_replaced || end.may_begin_again);
}

TEST(WhatIfTest, OneAloneGoesOnFromTheCheckpoint) {
  const WhatIf alone = answers(ring(kOnFailure, 0)).at("chief-0");
  EXPECT_EQ(alone.then, kTrainingGoesOn);
  EXPECT_EQ(alone.from, From::kStepZero);
  EXPECT_EQ(alone.again, kAtOnce);
}

TEST(WhatIfTest, ServersAreMissedAndSpareWorkersAreNot) {
  api::TrainingJob job = plan::make_job_with_servers(3, 2, 1);
  job.spec.strategy.synchronization = api::Synchronization::kAsynchronous;
  auto& roles = job.spec.replica_specs;
  for (auto* const role : {&roles.chief, &roles.worker, &roles.ps, &roles.evaluator})
    (*role)->restart_policy = kOnFailure;
  job.spec.checkpoint.every_steps = 100;
  const auto all = answers(job);
  EXPECT_EQ(all.at("ps-0").then, kAllBeginAgain);
  EXPECT_EQ(all.at("ps-0").from, From::kCheckpoint);
  EXPECT_EQ(all.at("worker-0"), of_worker(kOthersGoOn, 3, kNobody, kNobody));
  EXPECT_EQ(all.at("evaluator-0").then, kTrainingGoesOn);
  EXPECT_EQ(all.at("evaluator-0").again, kAtOnce);
}

TEST(WhatIfTest, AJobThatHasEndedLosesNobody) {
  api::TrainingJob job = ring(kOnFailure);
  job.status.phase = api::Phase::kSucceeded;
  EXPECT_THAT(if_a_member_dies(job, plan::kubernetes_limits(), {}), IsEmpty());
}

TEST(WhatIfTest, EveryAnswerHasATextOfItsOwn) {
  std::vector<WhatIf> all;
  for (const auto then :
       {kAllBeginAgain, kOthersStay, kTrainingGoesOn, kOthersGoOn, kOthersWait, kStandbyTakesPlace})
    all.push_back(of_worker(then, 2, kNobody, kAtOnce));
  for (const auto from : {From::kHere, From::kCheckpoint, From::kStepZero})
    all.push_back(of_worker(kOthersGoOn, 2, from, kAtOnce));
  all.push_back(of_worker(kOthersGoOn, 1, kNobody, kAtOnce));
  all.push_back(of_worker(kOthersGoOn, 2, kNobody, kNobody));
  all.push_back(of_worker(kOthersGoOn, 2, kNobody, Duration(1s)));
  WhatIf end = of_worker(kJobFails, 2, kNobody, kNobody);
  all.push_back(end);
  end.reason = "MemberKilled";
  all.push_back(end);
  end.may_be_replaced = true;
  all.push_back(end);
  for (const int left : {0, 1}) {
    end.left = left;
    all.push_back(end);
  }
  end.may_be_replaced = false;
  end.may_begin_again = true;
  all.push_back(end);
  std::set<std::string> texts;
  for (const WhatIf& each : all) EXPECT_TRUE(texts.insert(text_of(each)).second) << text_of(each);
}

TEST(WhatIfTest, TheLinesStandBelowEachOther) {
  const WhatIf worker = of_worker(kOthersStay, 0, kNobody, kNobody);
  WhatIf chief = worker;
  chief.role = Role::kChief;
  const std::string text = text_of(worker);
  EXPECT_THAT(what_if_lines({chief, worker}),
              ElementsAre("If a member died now:", "  chief-0   " + text, "  worker-0  " + text));
  EXPECT_THAT(what_if_lines({}), IsEmpty());
}

}  // namespace
}  // namespace paceline::reconcile

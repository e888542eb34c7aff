// Members' host names: when the cluster is asked to see to them, and what an error changes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/retry_after.h"
#include "tests/unit/controller/reconcile/reconciler_fixture.h"

namespace paceline::reconcile {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

class NamesTest : public ReconcilerTest {
 protected:
  // What changes in the cluster would put the job into the queue, too.
  NamesTest() { cluster_.watch({}); }
  // Whether the job is looked at again after this time, and not before.
  void expect_due_after(Duration time) {
    while (queue_.get(0s)) queue_.done(kKey);
    clock_.advance(time - 1ms);
    EXPECT_EQ(queue_.get(0s), std::nullopt);
    clock_.advance(1ms);
    const auto due = queue_.get(0s);
    EXPECT_EQ(due, kKey);
    if (due) queue_.done(*due);
  }
  std::vector<cluster::Event> told() {
    std::vector<cluster::Event> events = cluster_.events();
    std::erase_if(events, [](const cluster::Event& event) { return event.reason != "NamesNotPublished"; });
    return events;
  }
};

TEST_F(NamesTest, EveryPassSeesToThemOfAJobThatIsThere) {
  pass();
  ASSERT_EQ(cluster_.named().size(), 1u);
  const cluster::JobNames names = cluster_.named()[0];
  EXPECT_EQ(names.ns, "default");
  EXPECT_EQ(names.job, "fashion");
  EXPECT_EQ(names.job_uid, "job-uid");
  EXPECT_EQ(names.pods, 2u) << "a chief and a worker";
  bring_up();
  for (const std::string& name : pods()) cluster_.finish(name, 0);
  set_report(plan::ReportPhase::kFinished);
  pass();
  pass();
  EXPECT_EQ(status().phase, api::Phase::kSucceeded);
  EXPECT_EQ(cluster_.named().back().pods, 0u) << "nobody is waited for any more";
}

TEST_F(NamesTest, WhatIsGatheredIsLookedAtInTimeWhateverBecomesOfThePass) {
  cluster_.names_answer(std::optional<Duration>(300ms));
  pass();
  expect_due_after(300ms);
  cluster_.refuse_creations(absl::ResourceExhaustedError("quota"));
  ASSERT_TRUE(cluster_.delete_pod("default", "fashion-worker-0-0", "", 0s).ok());
  EXPECT_FALSE(reconciler_->reconcile_once(kKey).ok());
  expect_due_after(300ms);
  cluster_.names_answer(std::optional<Duration>());
  EXPECT_FALSE(reconciler_->reconcile_once(kKey).ok());
  clock_.advance(1h);
  while (queue_.get(0s)) queue_.done(kKey);
}

TEST_F(NamesTest, AnErrorIsToldOnceAndHindersNothing) {
  cluster_.names_answer(absl::PermissionDeniedError("403 Forbidden: endpointslices"));
  bring_up();
  EXPECT_EQ(status().phase, api::Phase::kRunning);
  expect_due_after(kNamesRetry);
  pass();
  ASSERT_EQ(told().size(), 1u);
  EXPECT_TRUE(told()[0].warning);
  EXPECT_EQ(told()[0].job_uid, "job-uid");
  EXPECT_THAT(told()[0].message,
              HasSubstr("host names of its pods lead nowhere: 403 Forbidden: endpointslices"));
  cluster_.names_answer(absl::InvalidArgumentError("422"));
  clock_.advance(kNamesRetry);
  pass();
  EXPECT_EQ(told().size(), 2u) << "another reason";
  cluster_.names_answer(std::optional<Duration>());
  clock_.advance(kNamesRetry);
  pass();
  cluster_.names_answer(absl::InvalidArgumentError("422"));
  pass();
  EXPECT_EQ(told().size(), 3u) << "it had gone well meanwhile";
}

TEST_F(NamesTest, WhatPassesIsTriedAgainWithoutAWordToTheUser) {
  cluster_.names_answer(absl::AbortedError("409"));
  pass();
  expect_due_after(kNamesLook);
  absl::Status busy = absl::UnavailableError("503");
  cluster_.names_answer(busy);
  pass();
  expect_due_after(kNamesRetry);
  set_retry_after(busy, 2 * kNamesRetry);
  cluster_.names_answer(busy);
  pass();
  const std::size_t asked = cluster_.named().size();
  clock_.advance(kNamesRetry);
  pass();
  EXPECT_EQ(cluster_.named().size(), asked) << "what wakes a pass is no leave to ask again";
  expect_due_after(kNamesRetry);
  cluster_.names_answer(absl::CancelledError("its namespace ends"));
  pass();
  while (queue_.get(0s)) queue_.done(kKey);
  clock_.advance(1h);
  EXPECT_EQ(queue_.get(0s), std::nullopt);
  EXPECT_TRUE(told().empty());
}

}  // namespace
}  // namespace paceline::reconcile

// What is told of a failure, by whom, and only once.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "controller/reconcile/reconciler.h"
#include "tests/unit/controller/reconcile/reconciler_fixture.h"

namespace paceline::reconcile {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(ReconcilerTest, AFailureCarriesTheLastLinesOfTheLog) {
  bring_up();
  cluster_.kill("fashion-worker-0-0", SIGKILL);
  EXPECT_FALSE(pass().done);
  clock_.advance(limits_.verdict_grace);
  pass();
  EXPECT_EQ(status().phase, api::Phase::kFailed);
  EXPECT_THAT(status().message,
              HasSubstr("worker-0 (pod fashion-worker-0-0, pid 1002) was killed by signal 9 (SIGKILL)"));
  EXPECT_THAT(status().message, HasSubstr("last words of fashion-worker-0-0\n?[31mxxx"));
  EXPECT_LT(status().message.size(), 1000u) << "an endless line is cut";
  EXPECT_THAT(pods(), ElementsAre("fashion-worker-0-0")) << "the chief was deleted";
  EXPECT_TRUE(pass().done);
}

// The nodes' clocks are not the controller's.
TEST_F(ReconcilerTest, AVerdictsTimeIsCountedByTheControllersClock) {
  replace_workers();
  bring_up();
  clock_.advance(10min);
  cluster_.kill("fashion-worker-0-0", SIGKILL);
  clock_.advance(-10min);
  EXPECT_LE(pass().requeue_after, limits_.verdict_grace);
  clock_.advance(limits_.verdict_grace - 1ms);
  EXPECT_EQ(pass().requeue_after, 1ms);
  clock_.advance(1ms);
  pass();
  EXPECT_EQ(status().phase, api::Phase::kRestarting);
}

void expect_that_the_log_is_told_once(const std::string& message) {
  const std::size_t told = message.find("last words of");
  ASSERT_NE(told, std::string::npos);
  EXPECT_EQ(message.find("last words of", told + 1), std::string::npos) << message;
  EXPECT_THAT(message, HasSubstr(":\n?[31mxxx")) << "its other lines are there";
}

TEST_F(ReconcilerTest, WhatAMemberToldItselfItsLogDoesNotTellAgain) {
  bring_up();
  (*reports_.report_.lock())->fault =
      api::Fault{.kind = api::FaultKind::kFailed,
                 .role = Role::kWorker,
                 .index = 0,
                 .evidence = {{api::ObservationKind::kSaid, "last words of fashion-worker-0-0"}}};
  cluster_.finish("fashion-worker-0-0", 1);
  pass();
  ASSERT_EQ(status().phase, api::Phase::kFailed);
  expect_that_the_log_is_told_once(status().message);
  EXPECT_FALSE(status().message.ends_with('\n'));
}

TEST_F(ReconcilerTest, WhatTheClusterTellsOfAnEndItsLogDoesNotTellAgain) {
  pass();
  cluster_.fail_to_start("fashion-worker-0-0",
                         "init container fetch failed: last words of fashion-worker-0-0");
  clock_.advance(limits_.verdict_grace);
  pass();
  ASSERT_EQ(status().phase, api::Phase::kFailed);
  expect_that_the_log_is_told_once(status().message);
}

}  // namespace
}  // namespace paceline::reconcile

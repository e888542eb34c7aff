// A job whose store wants it left as it is (its spec became invalid under it): nothing is tried again.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller/reconcile/reconciler_fixture.h"

namespace paceline::reconcile {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

class RefusingStore final : public CountingStore {
 public:
  absl::StatusOr<StoredJob> get(const std::string& key) override {
    const std::string why = *refusal.lock();
    if (why.empty()) return CountingStore::get(key);
    ++*refused.lock();
    return absl::FailedPreconditionError(why);
  }
  Guarded<std::string> refusal;
  Guarded<int> refused{0};
};

class LeftAloneTest : public ::testing::Test {
 protected:
  LeftAloneTest() {
    EXPECT_TRUE(jobs_.store_.add(stored_job()).ok());
    ReconcilerOptions options;
    options.on_pass = [this](std::string_view result, Duration) { passes_.lock()->emplace_back(result); };
    reconciler_.emplace(cluster_, jobs_, reports_, clock_, queue_, small_limits(),
                        Logger::to_stderr("test", LogLevel::kInfo), options);
  }
  // Waits until the loop has made one more pass.
  void look() {
    const std::size_t before = passes_.lock()->size();
    reconciler_->notify(kKey);
    bool passed = false;
    passes_.lock_when([&](const auto& passes) { return passes.size() > before; }, 20s, &passed);
    EXPECT_TRUE(passed);
  }

  FakeClock clock_;
  FakeCluster cluster_{clock_};
  RefusingStore jobs_;
  FakeReports reports_;
  queue::WorkQueue queue_{clock_};
  Guarded<std::vector<std::string>> passes_;
  std::optional<Reconciler> reconciler_;
};

int count(std::string_view text, std::string_view part) {
  int times = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++times;
  return times;
}

TEST_F(LeftAloneTest, ItIsLookedAtWhenItChangesAndOnlyThen) {
  ::testing::internal::CaptureStderr();
  *jobs_.refusal.lock() = "it is left as it is: steps: 0";
  reconciler_->start();
  for (int i = 0; i < 3; ++i) look();
  EXPECT_TRUE(reconciler_->snapshots().empty()) << "its phase is not known";
  EXPECT_EQ(queue_.failures(kKey), 0) << "nothing waits to be tried again";
  EXPECT_EQ(*jobs_.writes_.lock(), 0);
  *jobs_.refusal.lock() = "it is left as it is: steps: -1";
  look();
  jobs_.refusal.lock()->clear();
  look();
  EXPECT_EQ(reconciler_->snapshots().size(), 1u);
  EXPECT_EQ(jobs_.get(kKey)->job.status.phase, api::Phase::kStarting) << "it goes on";
  const int refused = *jobs_.refused.lock();
  EXPECT_EQ(refused, 4);
  *jobs_.refusal.lock() = "it is left as it is: steps: -1";
  reconciler_->notify(kKey);
  bool again = false;
  jobs_.refused.lock_when([&](int now) { return now > refused; }, 20s, &again);
  EXPECT_TRUE(again);
  reconciler_.reset();
  EXPECT_THAT(*passes_.lock(), Not(::testing::Contains("error")));
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(count(log, "steps: 0"), 1) << log;
  EXPECT_EQ(count(log, "steps: -1"), 2) << "it was mended between: " << log;
  EXPECT_THAT(log, Not(HasSubstr("it is tried again")));
}

// Only the store's own word counts.
TEST_F(LeftAloneTest, WhatAnythingElseRefusesIsTriedAgain) {
  cluster_.refuse_creations(absl::FailedPreconditionError("no room"));
  const auto plan = reconciler_->reconcile_once(kKey);
  EXPECT_EQ(plan.status().code(), absl::StatusCode::kUnavailable) << plan.status();
}

}  // namespace
}  // namespace paceline::reconcile

// A server that refuses and says for how long is not asked again before.

#include "base/retry_after.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/unit/controller/reconcile/reconciler_fixture.h"

namespace paceline::reconcile {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;

absl::Status busy(Duration time) {
  absl::Status status = absl::UnavailableError("429 TooManyRequests: busy");
  set_retry_after(status, time);
  return status;
}

// Keeps in order whose turn it was; every job is the same one.
class BusyStore final : public JobStore {
 public:
  absl::StatusOr<StoredJob> get(const std::string& key) override {
    asked.lock()->push_back(key);
    if (key != kKey) return absl::NotFoundError("no such job");
    return job;
  }
  absl::Status write_status(const std::string&, const api::Status&, const std::string&) override {
    return refusal;
  }
  absl::Status remove(const std::string&, const std::string&) override { return absl::OkStatus(); }

  StoredJob job = stored_job();
  absl::Status refusal;
  Guarded<std::vector<std::string>> asked;
};

class RetryAfterTest : public ::testing::Test {
 protected:
  // Two turns: a key that is due has had its own before the second.
  void give_others_a_turn() {
    for (const char* other : {"default/a", "default/b"}) {
      const auto before = std::ranges::count(*jobs_.asked.lock(), other);
      reconciler_.notify(other);
      wait_for(
          [&](const std::vector<std::string>& asked) { return std::ranges::count(asked, other) > before; });
    }
  }
  void wait_for(const std::function<bool(const std::vector<std::string>&)>& what) {
    bool held = false;
    jobs_.asked.lock_when([&](const std::vector<std::string>& asked) { return what(asked); }, 20s, &held);
    ASSERT_TRUE(held) << ::testing::PrintToString(*jobs_.asked.lock());
  }
  void expect_that_it_waits(Duration time) {
    reconciler_.start();
    reconciler_.notify(kKey);
    give_others_a_turn();
    clock_.advance(time - 1ms);
    give_others_a_turn();
    EXPECT_THAT(*jobs_.asked.lock(), ElementsAre(kKey, "default/a", "default/b", "default/a", "default/b"));
    clock_.advance(1ms);
    give_others_a_turn();
    wait_for([](const std::vector<std::string>& asked) { return std::ranges::count(asked, kKey) == 2; });
  }

  FakeClock clock_;
  FakeCluster cluster_{clock_};
  BusyStore jobs_;
  FakeReports reports_;
  queue::WorkQueue queue_{clock_};
  Reconciler reconciler_{cluster_, jobs_, reports_, clock_, queue_, small_limits(), Logger::none()};
};

TEST_F(RetryAfterTest, APassThatWasRefusedWaits) {
  jobs_.job.job.spec.run_policy.suspend = true;  // no pods, whose changes would be looked at
  jobs_.refusal = busy(90s);
  expect_that_it_waits(90s);
}

TEST_F(RetryAfterTest, SoDoesTheCreationOfPods) {
  cluster_.refuse_creations(busy(45s));
  expect_that_it_waits(45s);
}

// Its other pods come up, say, and are looked at.
TEST_F(RetryAfterTest, APassThatComesBeforeThenCreatesNothing) {
  cluster_.refuse_creations(busy(45s));
  EXPECT_EQ(retry_after(reconciler_.reconcile_once(kKey).status()), Duration(45s));
  cluster_.refuse_creations(absl::OkStatus());
  clock_.advance(45s - 1ms);
  const absl::Status early = reconciler_.reconcile_once(kKey).status();
  EXPECT_EQ(early.message(), "429 TooManyRequests: busy");
  EXPECT_EQ(retry_after(early), Duration(1ms));
  EXPECT_EQ(cluster_.creations(), 0);
  clock_.advance(1ms);
  const absl::Status then = reconciler_.reconcile_once(kKey).status();
  EXPECT_TRUE(then.ok()) << then;
  EXPECT_EQ(cluster_.creations(), 1);
}

TEST_F(RetryAfterTest, NobodyStaysAwayForHours) {
  cluster_.refuse_creations(busy(5h));
  expect_that_it_waits(10min);
}

}  // namespace
}  // namespace paceline::reconcile

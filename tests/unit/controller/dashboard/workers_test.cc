#include "controller/dashboard/workers.h"

#include <gtest/gtest.h>

#include <future>
#include <optional>
#include <string>

namespace paceline::dashboard {
namespace {

constexpr int kThreads = 4, kMostOfLane = kThreads / 2;

class WorkersTest : public ::testing::Test {
 protected:
  ~WorkersTest() override {
    end_.set_value();
    workers_.reset();
  }
  // Takes its thread until the test ends.
  Workers::Task waits() {
    return [this](const std::stop_token&) {
      ++*under_way_.lock();
      ended_.wait();
    };
  }
  void wait_until_under_way(int tasks) {
    bool held = false;
    (void)under_way_.lock_when([&](int now) { return now == tasks; }, std::chrono::seconds(60), &held);
    ASSERT_TRUE(held);
  }
  bool is_done(const std::string& whose) {
    std::promise<void> done;
    auto future = done.get_future();
    return workers_->post([&](const std::stop_token&) { done.set_value(); }, whose) &&
           future.wait_for(std::chrono::seconds(60)) == std::future_status::ready;
  }

  std::promise<void> end_;
  std::shared_future<void> ended_ = end_.get_future().share();
  Guarded<int> under_way_{0};
  std::optional<Workers> workers_{kThreads};
};

TEST_F(WorkersTest, LaneHasHalfOfTheThreads) {
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(workers_->post(waits(), "ada"));
  wait_until_under_way(kMostOfLane);
  EXPECT_TRUE(is_done("bob"));
  EXPECT_TRUE(is_done(""));
  wait_until_under_way(kMostOfLane);
}

TEST_F(WorkersTest, TasksOfNobodyHaveAllThreads) {
  for (int i = 0; i < kThreads; ++i) ASSERT_TRUE(workers_->post(waits()));
  wait_until_under_way(kThreads);
}

TEST_F(WorkersTest, LaneHasHalfOfTheTasksThatWait) {
  for (int i = 0; i < kMostOfLane; ++i) ASSERT_TRUE(workers_->post(waits(), "ada"));
  wait_until_under_way(kMostOfLane);
  std::size_t taken = 0;
  while (workers_->post([](const std::stop_token&) {}, "ada")) ++taken;
  EXPECT_EQ(taken, Workers::kMostWaiting / 2);
  EXPECT_TRUE(is_done("bob"));
}

TEST_F(WorkersTest, TasksThatWaitAreBounded) {
  for (int i = 0; i < kThreads; ++i) ASSERT_TRUE(workers_->post(waits()));
  wait_until_under_way(kThreads);
  std::size_t taken = 0;
  while (workers_->post([](const std::stop_token&) {}, std::to_string(taken))) ++taken;
  EXPECT_EQ(taken, Workers::kMostWaiting);
}

TEST(WorkersTurnsTest, LanesTakeTurns) {
  std::promise<void> begin, done;
  std::string order;
  Workers workers(1);
  const auto append = [&](char name) { return [&, name](const std::stop_token&) { order += name; }; };
  ASSERT_TRUE(workers.post([&](const std::stop_token&) { begin.get_future().wait(); }));
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(workers.post(append('a'), "ada"));
  ASSERT_TRUE(workers.post(append('b'), "bob"));
  begin.set_value();
  ASSERT_TRUE(workers.post([&](const std::stop_token&) { done.set_value(); }, "ada"));
  done.get_future().wait();
  EXPECT_EQ(order, "abaa");
}

}  // namespace
}  // namespace paceline::dashboard

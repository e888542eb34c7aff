#include "runtime/bin/stop_signals.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <future>
#include <optional>
#include <thread>

namespace paceline {
namespace {

using namespace std::chrono_literals;

constexpr auto kLong = 20s;  // only a broken test waits so long

class StopSignalsTest : public ::testing::Test {
 protected:
  void watch(Duration others, Duration save) {
    auto signals = StopSignals::watch(request_, logger_, {others, save, [this] { ended_.set_value(); }});
    ASSERT_TRUE(signals.ok()) << signals.status();
    signals_ = *std::move(signals);
    end_ = ended_.get_future();
  }
  static void signal() { ::kill(::getpid(), SIGTERM); }
  template <typename Condition>
  bool wait(Condition condition) {
    const SystemClock clock;
    const Deadline deadline = Deadline::after(clock.now(), kLong);
    while (!condition() && !deadline.expired(clock.now())) std::this_thread::yield();
    return condition();
  }
  bool ends() { return end_.wait_for(kLong) == std::future_status::ready; }

  const Logger logger_ = Logger::none();
  trainer::StopRequest request_;
  std::promise<void> ended_;
  std::future<void> end_;
  std::unique_ptr<StopSignals> signals_;
};

TEST_F(StopSignalsTest, ARequestExpiresAndThenTheProcessEnds) {
  watch(40ms, 1h);
  EXPECT_FALSE(request_.requested());
  signal();
  EXPECT_TRUE(wait([&] { return request_.requested(); }));
  EXPECT_TRUE(wait([&] { return request_.expired(); }));
  EXPECT_TRUE(ends());
}

TEST_F(StopSignalsTest, ASaveIsWaitedFor) {
  watch(40ms, 1h);
  std::optional<trainer::StopRequest::Saving> saving(request_);
  signal();
  EXPECT_TRUE(wait([&] { return request_.expired(); }));
  EXPECT_EQ(end_.wait_for(400ms), std::future_status::timeout) << "in the middle of a save";
  saving.reset();
  EXPECT_TRUE(ends());
}

TEST_F(StopSignalsTest, ASaveThatMovesIsWaitedForForAnyTime) {
  constexpr auto kSave = 5s;  // this thread may stand still for less
  watch(20ms, kSave);
  const trainer::StopRequest::Saving saving(request_);
  signal();
  EXPECT_TRUE(wait([&] { return request_.expired(); }));
  const SystemClock clock;
  const Deadline longer = Deadline::after(clock.now(), kSave + 1s);
  while (!longer.expired(clock.now())) {
    request_.moved();
    ASSERT_EQ(end_.wait_for(10ms), std::future_status::timeout);
  }
  signal();
  EXPECT_TRUE(ends());
}

TEST_F(StopSignalsTest, NotForEver) {
  watch(40ms, 100ms);
  const trainer::StopRequest::Saving saving(request_);
  signal();
  EXPECT_TRUE(ends());
}

TEST_F(StopSignalsTest, FurtherSignalsEndEachWait) {
  watch(1h, 1h);
  const trainer::StopRequest::Saving saving(request_);
  signal();
  EXPECT_TRUE(wait([&] { return request_.requested(); }));
  EXPECT_FALSE(request_.expired());
  signal();
  EXPECT_TRUE(wait([&] { return request_.expired(); }));
  signal();
  EXPECT_TRUE(ends());
}

}  // namespace
}  // namespace paceline

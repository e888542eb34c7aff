#include "runtime/exchange/staged_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <thread>

#include "runtime/collective/fabric.h"
#include "runtime/exchange/exchanges.h"
#include "tests/support/late_device.h"

namespace paceline::exchange {
namespace {

using paceline::testing::LateQueue;
using std::chrono::seconds;
using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr std::size_t kElements = 96, kBehind = 4;
const SystemClock kClock;

v1::ExchangeSpec spec() {
  v1::ExchangeSpec spec;
  spec.set_bucket_bytes(128);
  spec.set_overlap(true);
  spec.set_timeout_ms(30'000);
  return spec;
}

// What one member has.
struct Member {
  explicit Member(collective::Communicator& links)
      : device(kElements),
        staging(kElements + kBehind),
        exchange(make_staged_exchange(*make_exchange(kAllReduce, spec(), links, staging, kClock), queue,
                                      device.data(), kElements, staging, links.world_size() == 1)) {}
  // What the device has done by now.
  std::vector<float> seen() {
    EXPECT_TRUE(queue.set_mark(7).ok());
    EXPECT_TRUE(queue.wait_for_mark(7).ok());
    return device;
  }
  absl::Status finish() { return exchange->finish(Deadline::after(kClock.now(), seconds(30))); }

  LateQueue queue;
  std::vector<float> device, staging;
  std::unique_ptr<GradientExchange> exchange;
};

TEST(StagedExchange, TheSumOfAllIsOnEachDeviceBeforeWhatIsAddedNext) {
  auto group = collective::make_in_process_group(3, Generation{1}, kClock);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&links = *group[static_cast<std::size_t>(rank)], rank] {
      Member member(links);
      for (Step step = 0; step < 3; ++step) {
        ASSERT_TRUE(member.exchange->begin_step(step, {}).ok());
        const float scale = static_cast<float>((rank + 1) * (step + 1));
        member.queue.add([&member, scale] {
          std::iota(member.device.begin(), member.device.end(), 0.0F);
          for (float& g : member.device) g *= scale;
          return absl::OkStatus();
        });
        ASSERT_TRUE(member.exchange->range_ready(48, kElements).ok());
        std::fill_n(member.staging.begin() + kElements, kBehind, scale);  // the caller's, at once
        ASSERT_TRUE(member.exchange->range_ready(kElements, kElements + kBehind).ok());
        ASSERT_TRUE(member.exchange->range_ready(0, 48).ok());
        ASSERT_TRUE(member.exchange->wait_for_device().ok());
        ASSERT_TRUE(member.finish().ok());
        const float sum = static_cast<float>(6 * (step + 1));
        EXPECT_THAT(std::span(member.staging).last(kBehind), Each(sum));
        std::vector<float> expected(kElements);
        for (std::size_t i = 0; i < kElements; ++i) expected[i] = sum * static_cast<float>(i);
        EXPECT_THAT(member.seen(), ElementsAreArray(expected));
      }
    });
  }
}

TEST(StagedExchange, WhoIsAloneCopiesNothing) {
  auto group = collective::make_in_process_group(1, Generation{1}, kClock);
  Member member(*group[0]);
  std::fill(member.device.begin(), member.device.end(), 3.0F);
  ASSERT_TRUE(member.exchange->begin_step(0, {}).ok());
  ASSERT_TRUE(member.exchange->range_ready(0, kElements).ok());
  ASSERT_TRUE(member.exchange->range_ready(kElements, kElements + kBehind).ok());
  ASSERT_TRUE(member.finish().ok());
  EXPECT_THAT(member.seen(), Each(3.0F));
  EXPECT_THAT(member.staging, Each(0.0F));
}

TEST(StagedExchange, ADevicesErrorIsThisMembersOwn) {
  auto group = collective::make_in_process_group(2, Generation{1}, kClock);
  Member member(*group[0]);
  ASSERT_TRUE(member.exchange->begin_step(0, {}).ok());
  member.queue.add([] { return absl::UnavailableError("the GPU is lost"); });
  ASSERT_TRUE(member.exchange->range_ready(0, kElements).ok());
  const absl::Status told = member.exchange->wait_for_device();
  EXPECT_EQ(told.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(told.message()), HasSubstr("the GPU is lost"));
}

}  // namespace
}  // namespace paceline::exchange

#include "runtime/exchange/staged_exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <thread>

#include "runtime/collective/fabric.h"
#include "runtime/exchange/exchanges.h"
#include "tests/support/late_device.h"

namespace paceline::exchange {
namespace {

using std::chrono::seconds;
using ::testing::Each;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

constexpr std::size_t kElements = 96, kBehind = 4;
const SystemClock kSystemClock;

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
        side(links.world_size() == 1 ? nullptr : new LateQueue(LateQueue::AtEnd::kFinishes)),
        exchange(make_staged_exchange(*make_exchange(kAllReduce, spec(), links, staging, kSystemClock), queue,
                                      std::unique_ptr<tensor::Queue>(side), device.data(), kElements,
                                      staging)) {}
  // What the device has done by now.
  std::vector<float> seen() {
    EXPECT_TRUE(queue.set_mark(7).ok());
    EXPECT_TRUE(queue.wait_for_mark(7).ok());
    return device;
  }
  absl::Status finish() { return exchange->finish(Deadline::after(kSystemClock.now(), seconds(30))); }

  LateQueue queue;
  std::vector<float> device, staging;
  LateQueue* const side;  // the exchange's
  std::unique_ptr<GradientExchange> exchange;
};

TEST(StagedExchange, TheSumOfAllIsOnEachDeviceBeforeWhatIsAddedNext) {
  auto group = collective::make_in_process_group(3, Generation{1}, kSystemClock);
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

TEST(StagedExchange, SingleMemberCopiesNothing) {
  auto group = collective::make_in_process_group(1, Generation{1}, kSystemClock);
  Member member(*group[0]);
  std::fill(member.device.begin(), member.device.end(), 3.0F);
  ASSERT_TRUE(member.exchange->begin_step(0, {}).ok());
  ASSERT_TRUE(member.exchange->range_ready(0, kElements).ok());
  ASSERT_TRUE(member.exchange->range_ready(kElements, kElements + kBehind).ok());
  ASSERT_TRUE(member.finish().ok());
  EXPECT_THAT(member.seen(), Each(3.0F));
  EXPECT_THAT(member.staging, Each(0.0F));
}

// What the device does next, here at its first mark behind them, is done without any of the copies.
TEST(StagedExchange, DevicesNextWorkWaitsForNoCopyToTheHost) {
  auto group = collective::make_in_process_group(2, Generation{1}, kSystemClock);
  Member member(*group[0]);
  std::fill(member.device.begin(), member.device.end(), 3.0F);
  ASSERT_TRUE(member.exchange->begin_step(0, {}).ok());
  ASSERT_TRUE(member.exchange->range_ready(48, kElements).ok());
  bool next = false;
  member.queue.add([&next] {
    next = true;
    return absl::OkStatus();
  });
  member.seen();
  EXPECT_TRUE(next);
  EXPECT_THAT(member.staging, Each(0.0F));
  ASSERT_TRUE(member.exchange->wait_for_device().ok());
  EXPECT_THAT(std::span(member.staging).subspan(48, kElements - 48), Each(3.0F));
}

TEST(StagedExchange, CopiesUnderWayEndBeforeItIsGone) {
  auto group = collective::make_in_process_group(2, Generation{1}, kSystemClock);
  Member member(*group[0]);
  std::fill(member.device.begin(), member.device.end(), 3.0F);
  ASSERT_TRUE(member.exchange->begin_step(0, {}).ok());
  ASSERT_TRUE(member.exchange->range_ready(0, kElements).ok());
  member.exchange.reset();
  EXPECT_THAT(std::span(member.staging).first(kElements), Each(3.0F));
}

// An exchange of the host whose sum, twice what it was given, comes in two parts, of which `between` sees
// the first one told.
class InParts final : public GradientExchange {
 public:
  InParts(std::span<float> gradient, std::function<void()> between)
      : gradient_(gradient), between_(std::move(between)) {}
  absl::Status begin_step(Step, Duration) override { return absl::OkStatus(); }
  absl::Status range_ready(std::size_t, std::size_t) override { return absl::OkStatus(); }
  void set_on_summed(OnSummed on_summed) override { on_summed_ = std::move(on_summed); }
  absl::Status finish(Deadline) override {
    for (float& g : gradient_.last(gradient_.size() - kFirst)) g *= 2;
    on_summed_(kElements + 1);
    on_summed_(kFirst);
    between_();
    for (float& g : gradient_.first(kFirst)) g *= 2;
    return absl::OkStatus();
  }
  ExchangeTimes last_times() const override { return {}; }
  void close(absl::Status) override {}

  static constexpr std::size_t kFirst = 32;

 private:
  const std::span<float> gradient_;
  const std::function<void()> between_;
  OnSummed on_summed_;
};

TEST(StagedExchange, ABucketsSumIsOnItsWayBeforeTheLastIsThere) {
  LateQueue queue;
  std::vector<float> device(kElements, 1.0F), staging(kElements + kBehind, 1.0F);
  auto* const side = new LateQueue(LateQueue::AtEnd::kFinishes);
  const auto between = [&] {
    ASSERT_TRUE(side->set_mark(7).ok());
    ASSERT_TRUE(side->wait_for_mark(7).ok());
    EXPECT_THAT(std::span(device).first(InParts::kFirst), Each(1.0F));
    EXPECT_THAT(std::span(device).subspan(InParts::kFirst), Each(2.0F));
  };
  const auto exchange =
      make_staged_exchange(std::make_unique<InParts>(staging, between), queue,
                           std::unique_ptr<tensor::Queue>(side), device.data(), kElements, staging);
  for (Step step = 0; step < 2; ++step) {
    std::fill(device.begin(), device.end(), 1.0F);
    ASSERT_TRUE(exchange->begin_step(step, {}).ok());
    ASSERT_TRUE(exchange->range_ready(0, kElements).ok());
    ASSERT_TRUE(exchange->finish(Deadline::after(kSystemClock.now(), seconds(30))).ok());
    ASSERT_TRUE(queue.set_mark(7).ok());
    ASSERT_TRUE(queue.wait_for_mark(7).ok());
    EXPECT_THAT(device, Each(2.0F));
  }
}

// Takes what it is given, but for the way back.
class NoWayBack final : public tensor::Queue {
 public:
  absl::Status upload(void*, std::span<const std::byte>) override {
    return absl::UnavailableError("the GPU is lost");
  }
  absl::Status download(std::span<std::byte>, const void*) override { return absl::OkStatus(); }
  absl::Status copy(void*, const void*, std::size_t) override { return absl::OkStatus(); }
  absl::Status clear(void*, std::size_t) override { return absl::OkStatus(); }
  absl::Status set_mark(std::size_t) override { return absl::OkStatus(); }
  absl::Status wait_for_mark(std::size_t) override { return absl::OkStatus(); }
  absl::Status follow(const tensor::Queue&, std::size_t) override { return absl::OkStatus(); }
};

TEST(StagedExchange, AnErrorOnTheWayBackIsToldWhenTheOthersHaveTheSum) {
  LateQueue queue;
  std::vector<float> device(kElements), staging(kElements + kBehind, 1.0F);
  bool goes_on = false;
  const auto exchange =
      make_staged_exchange(std::make_unique<InParts>(staging, [&] { goes_on = true; }), queue,
                           std::make_unique<NoWayBack>(), device.data(), kElements, staging);
  ASSERT_TRUE(exchange->begin_step(0, {}).ok());
  ASSERT_TRUE(exchange->range_ready(0, kElements).ok());
  EXPECT_EQ(exchange->finish(Deadline::after(kSystemClock.now(), seconds(30))),
            absl::InternalError("this member's device failed: the GPU is lost"));
  EXPECT_TRUE(goes_on);
  EXPECT_THAT(staging, Each(2.0F));
}

TEST(StagedExchange, ADevicesErrorIsThisMembersOwn) {
  auto group = collective::make_in_process_group(2, Generation{1}, kSystemClock);
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

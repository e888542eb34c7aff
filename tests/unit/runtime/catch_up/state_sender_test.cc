#include "runtime/catch_up/state_sender.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/support/assert_ok.h"
#include "tests/unit/runtime/catch_up/toy_job.h"

namespace paceline::catch_up {
namespace {

constexpr std::size_t kMany = 1'000'000;

void train(StateSender& sender, ToyState& state) {
  const Update update = state.step();
  sender.lend(state.view(), update);
  sender.take_back();
}

TEST(StateSender, AMemberWaitsForNoNewcomer) {
  ToyJob job(1);
  ToyState state(kMany);
  auto sender = job.sender(1);  // nobody is there
  for (int i = 0; i < 10; ++i) train(*sender, state);
  EXPECT_EQ(sender->waiting(), 0);
  sender.reset();  // at once, though it looks for the newcomer still
}

// It meets the source, and reads nothing.
TEST(StateSender, ANewcomerThatDoesNotKeepUpIsGivenUp) {
  ToyJob job(1);
  ToyState state(kMany);
  auto sender = job.sender(1);
  const std::array<int, 1> from = {1};
  PL_ASSERT_OK(links, job.fabric(0).meet(job.group(0), from, 1, job.soon(), kLinked));
  const Deadline deadline = job.soon();
  std::size_t most = 0;
  while (sender->status().ok() && !deadline.expired(job.clock.now())) {
    train(*sender, state);
    most = std::max(most, sender->waiting());
  }
  EXPECT_EQ(sender->status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_LE(most, StateSender::kMostWaiting + 2 * kMany * sizeof(float) + StateSender::kManyWaiting);
}

TEST(StateSender, ANewcomerThatGoesEndsIt) {
  ToyJob job(1);
  ToyState state(kMany);
  auto sender = job.sender(1);
  {
    const std::array<int, 1> from = {1};
    ASSERT_TRUE(job.fabric(0).meet(job.group(0), from, 1, job.soon(), kLinked).ok());
  }
  const Deadline deadline = job.soon();
  while (sender->status().ok() && !deadline.expired(job.clock.now())) train(*sender, state);
  EXPECT_EQ(sender->status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace paceline::catch_up

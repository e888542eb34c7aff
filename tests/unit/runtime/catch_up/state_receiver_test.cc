#include "runtime/catch_up/state_receiver.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/assert_ok.h"
#include "tests/unit/runtime/catch_up/toy_job.h"

namespace paceline::catch_up {
namespace {

constexpr std::size_t kElements = 400'003;  // several frames of each source, and no multiple of anything

// All sources take one step after the other, as they do in a ring, until `over`.
template <typename Over>
void train(ToyState& state, std::vector<std::unique_ptr<StateSender>>& senders, const ToyJob& job,
           Over over) {
  const Deadline deadline = job.soon();
  while (!over() && !deadline.expired(job.clock.now())) {
    const Update update = state.step();
    for (auto& sender : senders) sender->lend(state.view(), update);
    for (auto& sender : senders) sender->take_back();
    const auto busy = [](const auto& sender) { return sender->waiting() > kMostFloats; };
    while (std::ranges::any_of(senders, busy) && !over()) std::this_thread::yield();
  }
}

class CatchUpTest : public testing::TestWithParam<std::tuple<int, collective::TransportKind>> {};

TEST_P(CatchUpTest, TheNewcomerHasTheStateOfTheLastStepToTheBit) {
  const auto [sources, transport] = GetParam();
  ToyJob job(sources, transport);
  ToyState state(kElements), newcomer(kElements);
  for (int i = 0; i < 5; ++i) state.step();
  newcomer.weights.assign(kElements, 3.5F);
  newcomer.momentum.assign(kElements, -1.25F);

  auto receiver = job.receiver(newcomer);
  std::vector<std::unique_ptr<StateSender>> senders;
  for (int rank = 1; rank <= sources; ++rank) senders.push_back(job.sender(rank));
  train(state, senders, job, [&] { return job.told(); });
  ASSERT_EQ(job.news(1).size(), 1);
  EXPECT_EQ(job.news(1).front(), absl::OkStatus());
  const Step caught_up = state.steps;
  train(state, senders, job, [&] { return state.steps == caught_up + 3; });
  const Update last = state.step();
  for (auto& sender : senders) sender->end(state.view(), last);

  PL_ASSERT_OK(learned, receiver->finish(job.soon()));
  EXPECT_EQ(learned->step, state.steps);
  EXPECT_EQ(learned->optimizer_steps, state.steps);
  EXPECT_EQ(newcomer.weights, state.weights);
  EXPECT_EQ(newcomer.momentum, state.momentum);
  EXPECT_GE(receiver->bytes_received(), 2 * kElements * sizeof(float));
  for (const auto& sender : senders) EXPECT_EQ(sender->status(), absl::OkStatus());
}

INSTANTIATE_TEST_SUITE_P(CatchUp, CatchUpTest,
                         testing::Values(std::tuple(1, collective::TransportKind::kAuto),
                                         std::tuple(3, collective::TransportKind::kAuto),
                                         std::tuple(3, collective::TransportKind::kTcp)));

TEST(StateReceiver, ASmallModelHasSourcesThatHaveNothingToGive) {
  ToyJob job(3);
  ToyState state(20), newcomer(20);
  auto receiver = job.receiver(newcomer);
  std::vector<std::unique_ptr<StateSender>> senders;
  for (int rank = 1; rank <= 3; ++rank) senders.push_back(job.sender(rank));
  train(state, senders, job, [&] { return job.told(); });
  const Update last = state.step();
  for (auto& sender : senders) sender->end(state.view(), last);
  EXPECT_TRUE(receiver->finish(job.soon()).ok());
  EXPECT_EQ(newcomer.weights, state.weights);
}

TEST(StateReceiver, AViewThatEndsTooEarlyLeavesItWithoutAState) {
  ToyJob job(1);
  ToyState state(kElements), newcomer(kElements);
  auto sender = job.sender(1);
  sender->end(state.view(), state.step());  // nobody is there yet who could be given any of it
  auto receiver = job.receiver(newcomer);
  EXPECT_EQ(receiver->finish(job.soon()).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(job.news(1).front().code(), absl::StatusCode::kUnavailable);
}

TEST(StateReceiver, ASourceThatGoesIsToldByName) {
  ToyJob job(2);
  ToyState state(kElements), newcomer(kElements);
  auto receiver = job.receiver(newcomer);
  std::vector<std::unique_ptr<StateSender>> senders;
  for (int rank = 1; rank <= 2; ++rank) senders.push_back(job.sender(rank));
  train(state, senders, job, [&] { return receiver->bytes_received() > 0; });
  senders.pop_back();
  const absl::Status status = receiver->finish(job.soon()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("member 2"), std::string::npos);
}

TEST(StateReceiver, ASourceThatCanNotGiveItsPartEndsIt) {
  ToyJob job(2);
  ToyState state(kElements), newcomer(kElements);
  auto receiver = job.receiver(newcomer);
  auto gives = job.sender(1), refuses = job.sender(2);
  refuses->refuse();
  EXPECT_EQ(receiver->finish(job.soon()).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(StateReceiver, CancellingEndsItBeforeAndAfterTheSourcesHaveCome) {
  for (const bool met : {false, true}) {
    ToyJob job(1);
    ToyState state(kElements), newcomer(kElements);
    auto receiver = job.receiver(newcomer);
    std::vector<std::unique_ptr<StateSender>> senders;
    if (met) {
      senders.push_back(job.sender(1));
      train(state, senders, job, [&] { return receiver->bytes_received() > 0; });
    }
    receiver->cancel();
    EXPECT_EQ(receiver->finish(job.soon()).status().code(), absl::StatusCode::kCancelled) << met;
  }
}

// Frames that no source sends: what the newcomer has would be of several steps.
TEST(StateReceiver, FramesOutOfOrderAreRefused) {
  const auto refused = [](std::vector<Frame> frames) {
    ToyJob job(1);
    ToyState newcomer(1000);
    auto receiver = job.receiver(newcomer);
    const std::array<int, 1> to = {0};
    auto links = job.fabric(1).meet(job.group(1), to, 1, job.soon(), kLinked);
    PL_CHECK(links.ok(), "the newcomer is there");
    for (const Frame& frame : frames) {
      const auto header = encode(frame);
      std::vector<std::byte> bytes(header.begin(), header.end());
      bytes.resize(bytes.size() + floats_behind(frame, 2) * sizeof(float));
      PL_CHECK(::send(links->front().sockets.front().get(), bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
                   static_cast<ssize_t>(bytes.size()),
               "the socket has room");
    }
    return receiver->finish(job.soon()).status().code();
  };
  const auto update = [](Step step) { return Update{step, step, 0.1, 1}; };
  using enum FrameKind;
  constexpr auto kRefused = absl::StatusCode::kInvalidArgument;
  EXPECT_EQ(refused({{kState, update(3), 0, 1000}, {kEnd, update(3)}}), absl::StatusCode::kOk);
  EXPECT_EQ(refused({{kState, update(3), 16, 10}}), kRefused) << "not at the beginning";
  EXPECT_EQ(refused({{kState, update(3), 0, 1001}}), kRefused) << "too much";
  EXPECT_EQ(refused({{kState, update(3), 0, 500}, {kState, update(4), 500, 500}}), kRefused)
      << "of two steps";
  EXPECT_EQ(refused({{kGradient, update(3), 0, 10}}), kRefused) << "of what it has not";
  EXPECT_EQ(refused({{kState, update(3), 0, 500}, {kGradient, update(5), 0, 500}}), kRefused)
      << "a step is missing";
  EXPECT_EQ(refused({{kState, update(3), 0, 500}, {kGradient, update(4), 0, 600}}), kRefused)
      << "beyond what it has";
  EXPECT_EQ(
      refused({{kState, update(3), 0, 500}, {kGradient, update(4), 0, 400}, {kState, update(4), 500, 500}}),
      kRefused)
      << "before the step is whole";
  EXPECT_EQ(refused({{kState, update(3), 0, 1000}, {kEnd, update(4)}}), kRefused) << "another step's end";
}

}  // namespace
}  // namespace paceline::catch_up

// How a member gets rank 0's state where it holds another.

#include "runtime/trainer/replica.h"

#include <gtest/gtest.h>

#include <numeric>

#include "runtime/collective/call_communicator.h"
#include "tests/support/fake_clock.h"
#include "tests/support/step_model.h"

namespace paceline::trainer {
namespace {

constexpr std::size_t kElements = Replica::kPieceFloats * 2 + 100;
constexpr Duration kLimit = std::chrono::minutes(30), kCall = std::chrono::minutes(20);

class WideProgram final : public HandMadeProgram {
 public:
  WideProgram() : HandMadeProgram(1) {
    layout_.parameters = {{"w", {kElements}, 0, kElements, true}};
    layout_.elements = layout_.trained_elements = kElements;
  }
  void initialize(std::uint64_t, std::span<float> weights) const override {
    std::fill(weights.begin(), weights.end(), -1.0F);
  }
  tensor::BatchMemory batch() override { return {{}, {}, labels_}; }
  absl::StatusOr<tensor::ForwardResult> forward(std::int64_t) override { return tensor::ForwardResult{}; }
  absl::Status backward(float, bool, const OnReady&) override { return absl::OkStatus(); }
};

// Rank 1's links to a rank 0 that holds other weights after step 7: 0, 1, 2, ... and so on through all of its
// vectors. Each call takes its time. With `same` rank 0 holds what rank 1 does, and another rank does not;
// after so many pieces rank 0 is gone.
class SlowLinks final : public collective::CallCommunicator {
 public:
  explicit SlowLinks(FakeClock& clock, bool same = false, std::size_t breaks_after = SIZE_MAX)
      : clock_(clock), same_(same), breaks_after_(breaks_after) {}
  int rank() const override { return 1; }
  int world_size() const override { return 2; }
  Generation generation() const override { return Generation{1}; }
  void close(absl::Status) override {}
  absl::Status closed() const override { return absl::OkStatus(); }
  collective::Counters counters() const override { return {}; }
  std::size_t pieces() const { return pieces_; }

 private:
  absl::Status run(const collective::Call& call, Deadline deadline) override {
    clock_.advance(kCall);
    if (deadline.expired(clock_.now())) return absl::DeadlineExceededError("rank 0 moved nothing");
    if (call.dtype == DType::kI64) {
      auto* const values = reinterpret_cast<std::int64_t*>(call.data);
      if (call.kind == collective::Kind::kAllReduce) {
        --values[2];  // the least of the hashes
      } else if (!same_) {
        std::fill_n(values, call.count, 7);
      }
      return absl::OkStatus();
    }
    if (pieces_ == breaks_after_) return absl::UnavailableError("rank 0 is gone");
    EXPECT_LE(call.count, Replica::kPieceFloats);
    auto* const floats = reinterpret_cast<float*>(call.data);
    for (std::size_t i = 0; i < call.count && !same_; ++i) floats[i] = static_cast<float>(next_++);
    ++pieces_;
    return absl::OkStatus();
  }

  FakeClock& clock_;
  const bool same_;
  const std::size_t breaks_after_;
  std::size_t next_ = 0, pieces_ = 0;
};

TEST(Replica, AStateThatMovesIsWaitedForHoweverLargeItIs) {
  v1::TrainingSpec spec = step_spec(8, 32);
  spec.mutable_optimizer()->set_momentum(0.5);
  auto arena = transport::Arena::create(std::size_t{1} << 26);
  ASSERT_TRUE(arena.ok()) << arena.status();
  const auto replica = Replica::create(spec, WideProgram(), **arena);
  ASSERT_TRUE(replica.ok()) << replica.status();
  FakeClock clock;
  const TimePoint start = clock.now();
  SlowLinks links(clock);
  const auto agrees = (*replica)->agrees(links, Deadline::after(clock.now(), kLimit));
  ASSERT_TRUE(agrees.ok()) << agrees.status();
  ASSERT_FALSE(*agrees);
  const absl::Status spread = (*replica)->spread(links, nullptr, 0, clock, kLimit);
  ASSERT_TRUE(spread.ok()) << spread;
  EXPECT_EQ(links.pieces(), 6u) << "three of the weights, and of the momentum";
  EXPECT_EQ(clock.now() - start, 8 * kCall);
  EXPECT_EQ((*replica)->step(), 7);
  std::size_t at = 0;
  const auto check = [&](std::span<const float> values) {
    ASSERT_EQ(values.size(), kElements);
    for (const float value : values) ASSERT_EQ(value, static_cast<float>(at++));
  };
  check((*replica)->weights());
  ASSERT_EQ((*replica)->optimizer_state().size(), 1u);
  check((*replica)->optimizer_state()[0].values);
}

TEST(Replica, ACopyThatBreaksLeavesAStateWholeWhereItIsTheSame) {
  const v1::TrainingSpec spec = step_spec(8, 32);
  for (const bool same : {true, false}) {
    auto arena = transport::Arena::create(std::size_t{1} << 26);
    ASSERT_TRUE(arena.ok()) << arena.status();
    const auto replica = Replica::create(spec, WideProgram(), **arena);
    ASSERT_TRUE(replica.ok()) << replica.status();
    FakeClock clock;
    SlowLinks links(clock, same, 1);
    ASSERT_TRUE((*replica)->agrees(links, Deadline::after(clock.now(), kLimit)).ok());
    EXPECT_TRUE(absl::IsUnavailable((*replica)->spread(links, nullptr, 0, clock, kLimit)));
    EXPECT_EQ((*replica)->is_whole(), same);
  }
}

}  // namespace
}  // namespace paceline::trainer

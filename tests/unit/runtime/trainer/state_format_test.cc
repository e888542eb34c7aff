#include "runtime/trainer/state_format.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <numeric>

#include "base/text.h"
#include "tests/support/assert_ok.h"
#include "tests/support/step_model.h"
#include "tests/support/temporary_folder.h"

namespace paceline::trainer {
namespace {

using ::testing::HasSubstr;

struct Vectors {
  Vectors() : weights(5), momentum(5) {}
  StateVectors views() { return {weights, {{"momentum", momentum}}}; }
  std::vector<float> weights, momentum;
};

// Through a folder and back.
absl::StatusOr<StatePosition> round_trip(const StatePosition& position, Vectors& out,
                                         std::size_t* tensors = nullptr) {
  const TemporaryFolder folder;
  const StateFormat format(step_spec(100, 32));
  Vectors in;
  std::iota(in.weights.begin(), in.weights.end(), 1.0F);
  std::iota(in.momentum.begin(), in.momentum.end(), 10.0F);
  const NamedState state = format.name(in.views(), position);
  if (tensors != nullptr) *tensors = state.snapshot.tensors.size();
  checkpoint::CheckpointStore store(folder.path(), 1);
  EXPECT_TRUE(store.save(state.snapshot).ok());
  const auto loaded = store.load_latest();
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->progress.ledger_position, position.step * 32);
  return format.restore(*loaded, out.views());
}

TEST(StateFormat, WholeStepsNeedNoMoreThanAllReduceWrites) {
  Vectors out;
  std::size_t tensors = 0;
  PL_ASSERT_OK(position, round_trip(StatePosition::after(7), out, &tensors));
  EXPECT_EQ(*position, StatePosition::after(7));
  EXPECT_EQ(tensors, 2u);
  EXPECT_EQ(out.weights, (std::vector<float>{1, 2, 3, 4, 5}));
  EXPECT_EQ(out.momentum, (std::vector<float>{10, 11, 12, 13, 14}));
  // Of servers, too: a job may go on with either.
  ASSERT_TRUE(round_trip({7, 7, {3, 21, {}}}, out, &tensors).ok());
  EXPECT_EQ(tensors, 2u);
}

TEST(StateFormat, UnitsThatTheStepsDoNotTellAreKept) {
  for (const StatePosition& position : std::vector<StatePosition>{
           {7, 23, {3, 25, {20, 22}}}, {7, 7, {3, 28, {}}}, {7, 21, {3, 21, {}}}, {0, 1, {2, 2, {0}}}}) {
    Vectors out;
    PL_ASSERT_OK(read, round_trip(position, out));
    EXPECT_EQ(*read, position);
  }
}

TEST(StateFormat, MissingOptimizerVectorIsNamed) {
  const TemporaryFolder folder;
  const StateFormat format(step_spec(100, 32));
  Vectors in, out;
  StateVectors plain = in.views();
  plain.optimizer.clear();
  checkpoint::CheckpointStore store(folder.path(), 1);
  const NamedState state = format.name(plain, StatePosition::after(7));
  ASSERT_TRUE(store.save(state.snapshot).ok());
  const absl::Status status = format.restore(store.load_latest().value(), out.views()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("another spec.training.optimizer.momentum; continue"));
}

TEST(StateFormat, InvalidPositionIsRefused) {
  for (const StatePosition& position : std::vector<StatePosition>{{7, 23, {3, 25, {25}}},
                                                                  {7, 23, {3, 25, {22, 20}}},
                                                                  {7, 23, {3, 25, {20, 20}}},
                                                                  {7, -1, {3, 21, {}}}}) {
    Vectors out;
    const auto read = round_trip(position, out);
    EXPECT_EQ(read.status().code(), absl::StatusCode::kDataLoss);
    EXPECT_THAT(std::string(read.status().message()), HasSubstr("progress/units"));
    EXPECT_EQ(out.weights, std::vector<float>(5)) << "nothing is changed";
  }
}

TEST(StateFormat, CountsOfTheManifestThatContradictOneAnotherAreRefusedByName) {
  const TemporaryFolder folder;
  const StateFormat format(step_spec(100, 32));
  Vectors in;
  in.weights = {1, 2, 3, 4, 5};
  checkpoint::CheckpointStore store(folder.path(), 1);
  ASSERT_TRUE(store.save(format.name(in.views(), StatePosition::after(7)).snapshot).ok());
  PL_ASSERT_OK(good, store.load_latest());
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  const auto altered = [&](const std::function<void(checkpoint::Progress&)>& alter) {
    checkpoint::LoadedCheckpoint loaded = *good;
    alter(loaded.progress);
    Vectors out;
    absl::Status status = format.restore(loaded, out.views()).status();
    EXPECT_EQ(status.code(), status.ok() ? absl::StatusCode::kOk : absl::StatusCode::kDataLoss);
    EXPECT_EQ(out.weights == std::vector<float>(5), !status.ok()) << "nothing is changed where it is refused";
    return std::string(status.message());
  };
  EXPECT_EQ(altered([](auto&) {}), "");
  EXPECT_THAT(altered([](auto& p) { p.schedule_step = 6; }), HasSubstr("'scheduleStep' 6 is not 'step' 7;"));
  for (const std::int64_t position : {std::int64_t{0}, std::int64_t{223}, std::int64_t{225}, kMost}) {
    EXPECT_THAT(
        altered([&](auto& p) { p.ledger_position = position; }),
        HasSubstr(str_cat("'ledgerPosition' ", position, " is not 'step' 7 times the global batch of 32")));
  }
  EXPECT_THAT(altered([](auto& p) { p.step = p.schedule_step = kMost; }),
              HasSubstr("'ledgerPosition' 224 is"));
  EXPECT_THAT(altered([](auto& p) { ++p.seed; }), HasSubstr("'seed' "));
}

TEST(StateFormat, AnEvaluatorReadsTheWeightsAlone) {
  const TemporaryFolder folder;
  const StateFormat format(step_spec(100, 32));
  Vectors in;
  in.weights = {1, 2, 3, 4, 5};
  checkpoint::CheckpointStore store(folder.path(), 1);
  ASSERT_TRUE(store.save(format.name(in.views(), StatePosition::after(2)).snapshot).ok());
  std::vector<float> weights(5);
  ASSERT_TRUE(format.restore(*store.load_latest(), {weights, {}}).ok());
  EXPECT_EQ(weights, in.weights);
}

}  // namespace
}  // namespace paceline::trainer

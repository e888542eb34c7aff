#include "runtime/trainer/checkpoint_rows.h"

#include <gtest/gtest.h>

#include <vector>

#include "runtime/model/wide_and_deep_batch.h"
#include "runtime/pserver/sparse/initializer.h"
#include "runtime/trainer/table_specs.h"
#include "tests/support/click_model.h"

namespace paceline::trainer {
namespace {

using pserver::sparse::RowsPull;
using pserver::sparse::SavedRows;

// Batches of rows, given one after the other.
class Given final : public pserver::sparse::RowSource {
 public:
  void add(int table, std::uint64_t id, std::vector<float> floats) {
    batches_.push_back({table, {{id}, {1}, {1}, {1}, std::move(floats)}});
  }
  absl::StatusOr<int> next(SavedRows& rows) override {
    rows.clear();
    if (at_ == batches_.size()) return 0;
    rows = batches_[at_].second;
    return batches_[at_++].first;
  }

 private:
  std::vector<std::pair<int, SavedRows>> batches_;
  std::size_t at_ = 0;
};

TEST(CheckpointRows, TheSamplesRowsAreTheCheckpointsAndOthersTheInitialOnes) {
  const auto specs = table_specs(click_spec(10, 32, 1, 1));
  const ClickDataset samples(600);  // three passes over them
  const auto rows = CheckpointRows::open(samples, click_shape(), specs);
  ASSERT_TRUE(rows.ok()) << rows.status();
  model::WideAndDeepBatch batch(click_shape(), 1);
  batch.look_up(std::vector<std::int32_t>{1, 2, 3});
  const auto id = batch.ids(1)[1], wide = batch.ids(0)[0];

  Given first;
  first.add(1, id, {7, 8, 0, 0, 0, 0});     // with Adam's state
  first.add(1, 12345, {1, 1, 0, 0, 0, 0});  // of no sample
  first.add(0, wide, {9, 0, 0});
  ASSERT_TRUE((*rows)->load(first, yes).ok());
  const auto pull = [&] {
    for (std::size_t t = 0; t < 2; ++t) {
      const RowsPull one{static_cast<int>(t), batch.ids(t), batch.rows(t)};
      EXPECT_TRUE((*rows)->pull(std::span(&one, 1)).ok());
    }
  };
  pull();
  EXPECT_EQ(batch.rows(1)[2], 7);
  EXPECT_EQ(batch.rows(1)[3], 8);
  EXPECT_EQ(batch.rows(0)[0], 9);
  std::vector<float> initial(2);
  pserver::sparse::initialize_row(specs[1].initializer, specs[1].seed, batch.ids(1)[0], initial);
  EXPECT_EQ(batch.rows(1)[0], initial[0]);
  EXPECT_EQ(batch.rows(1)[1], initial[1]);

  Given second;  // which lacks what the first one had
  ASSERT_TRUE((*rows)->load(second, yes).ok());
  pull();
  pserver::sparse::initialize_row(specs[1].initializer, specs[1].seed, id, initial);
  EXPECT_EQ(batch.rows(1)[2], initial[0]);
  EXPECT_EQ(batch.rows(0)[0], 0);
}

TEST(CheckpointRows, LoadingEndsWhenItShall) {
  const auto specs = table_specs(click_spec(10, 32, 1, 1));
  const auto rows = CheckpointRows::open(ClickDataset(5), click_shape(), specs);
  ASSERT_TRUE(rows.ok());
  Given given;
  given.add(0, 1, {1, 0, 0});
  given.add(0, 2, {1, 0, 0});
  int asked = 0;
  const auto no = [&]() -> absl::Status {
    return ++asked < 2 ? absl::OkStatus() : absl::CancelledError("asked to stop");
  };
  EXPECT_EQ((*rows)->load(given, no).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(asked, 2);
}

}  // namespace
}  // namespace paceline::trainer

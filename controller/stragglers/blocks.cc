#include "controller/stragglers/blocks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace paceline::stragglers {

namespace {

double seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

void Blocks::begin_view(int members) {
  members_.assign(static_cast<std::size_t>(members), {});
  begin_.reset();
  steps_ = 1;
}

void Blocks::add(int rank, const StepSample& sample) {
  Told& told = members_[static_cast<std::size_t>(rank)];
  if (sample.step <= told.newest) return;
  told.newest = sample.step;
  if (!begin_) begin_ = sample.step + kWarmUp;
  if (sample.step < *begin_) return;
  told.pending.push_back(sample);
  if (told.pending.size() > kMostPending) lose_pending();
}

// A member has told nothing for very long.
void Blocks::lose_pending() {
  Step newest = *begin_;
  for (Told& told : members_) {
    newest = std::max(newest, told.newest);
    told.pending.clear();
  }
  begin_ = newest + 1;
}

std::optional<Block> Blocks::take() {
  if (!begin_) return std::nullopt;
  Step told_by_all = members_.front().newest;
  Step first = std::numeric_limits<Step>::max();  // that anybody has told of
  for (const Told& told : members_) {
    told_by_all = std::min(told_by_all, told.newest);
    if (!told.pending.empty()) first = std::min(first, told.pending.front().step);
  }
  if (first > told_by_all) return std::nullopt;
  // Programs may leave out as many as they like: what nobody tells of is no block.
  if (first >= *begin_ + steps_) begin_ = first;
  Block block{.begin = *begin_, .end = *begin_ + steps_};
  if (told_by_all < block.end - 1) {
    if (time_until(told_by_all) < kBlock) return std::nullopt;
    block.end = told_by_all + 1;  // the steps have become longer
  }
  begin_ = block.end;
  double longest = 0;
  for (Told& told : members_) {
    const Row& row = block.rows.emplace_back(row_of(told));
    longest = std::max(longest, row.own() + row.wait + row.transfer);
  }
  constexpr double kMostSteps = 4096;
  if (longest > 0) steps_ = std::max<Step>(1, std::llround(std::min(kMostSteps, seconds(kBlock) / longest)));
  return block;
}

// The first member's time from the next block's begin to the end of step `last`; where it has told of some
// steps only, the others took as long.
Duration Blocks::time_until(Step last) const {
  Duration sum{};
  std::int64_t count = 0;
  for (const StepSample& sample : members_.front().pending) {
    if (sample.step > last) break;
    sum += sample.input + sample.compute + sample.update + sample.wait + sample.transfer;
    ++count;
  }
  if (count == 0) return Duration::zero();
  const double mean = static_cast<double>(sum.count()) / static_cast<double>(count);
  constexpr double kMostNs = 1e18;
  return Duration(
      static_cast<std::int64_t>(std::min(mean * static_cast<double>(last - *begin_ + 1), kMostNs)));
}

// It takes the steps before begin_ away.
Row Blocks::row_of(Told& told) const {
  Row row;
  for (; !told.pending.empty() && told.pending.front().step < *begin_; told.pending.pop_front()) {
    const StepSample& sample = told.pending.front();
    if (sample.checkpoint > Duration::zero()) continue;
    ++row.steps;
    row.input += seconds(sample.input);
    row.compute += seconds(sample.compute);
    row.update += seconds(sample.update);
    row.wait += seconds(sample.wait);
    row.transfer += seconds(sample.transfer);
    row.work += sample.work;
  }
  const double count = std::max(1, row.steps);
  for (double* sum : {&row.input, &row.compute, &row.update, &row.wait, &row.transfer, &row.work})
    *sum /= count;
  return row;
}

}  // namespace paceline::stragglers

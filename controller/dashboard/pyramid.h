#pragma once

// Numbers by step for a job of any length, in bounded memory: means over columns of 1, 2, 4, ... steps. Level
// k has columns of 2^k steps and keeps the newest of them, as many as each level has; the last level reaches
// back to the first step. Fine where it is new, coarse where it is old. A NaN says nothing: a mean is of the
// other numbers, of which the first then stands for it, too. Pure.
//
// Memory: columns x (channels + 1) numbers for each level, of which there are log2(steps / columns).

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "base/ids.h"

namespace paceline::dashboard {

template <typename Number>
class Pyramid {
 public:
  Pyramid(std::size_t channels, std::size_t columns) : channels_(channels), columns_(columns) {}

  // One step's numbers, one for each channel. Steps come about in order: one that is older than all that its
  // level keeps is left out there.
  void add(Step step, std::span<const Number> values) {
    if (step < 0 || values.size() != channels_) return;
    grow_to(step);
    for (std::size_t k = 0; k < levels_.size(); ++k) put(levels_[k], step >> k, values, 1);
  }

  // Numbers that were told as one of all steps of [first, last]: each column has them once. A series whose
  // newest step will be `newest` keeps some columns no more: those are passed over. REQUIRES: newest >= last.
  void add_span(Step first, Step last, std::span<const Number> values, Step newest) {
    if (first < 0 || last < first || values.size() != channels_) return;
    grow_to(last);
    for (std::size_t k = 0; k < levels_.size(); ++k) {
      const bool has_all = k + 1 == levels_.size();  // coarser ones are made of it
      const Step kept = has_all ? 0 : (newest >> k) - static_cast<Step>(columns_) + 1;
      for (Step column = std::max(first >> k, kept); column <= last >> k; ++column)
        put(levels_[k], column, values, 1);
    }
  }

  // Training goes on behind this step: what was told of later ones counts no more.
  void cut(Step step) {
    for (std::size_t k = 0; k < levels_.size(); ++k) {
      Level& level = levels_[k];
      for (Step column = std::max((step >> k) + 1, level.oldest); column <= level.newest; ++column)
        clear(level, column);
      level.newest = std::min(level.newest, step >> k);
      level.oldest = std::min(level.oldest, level.newest + 1);
      if (k > 0) make_anew(k, step >> k);
    }
  }

  // The finest level that has all of [from, to], as at most `most` columns. REQUIRES: most > 0.
  std::size_t level_of(Step from, Step to, std::size_t most) const {
    std::size_t k = 0;
    while (k < 62 && ((to >> k) - (from >> k) >= static_cast<Step>(most) || !reaches(k, from))) ++k;
    return k;
  }

  // NaN: nothing was told. Levels above the last have columns that are made of its own.
  Number mean(std::size_t k, Step column, std::size_t channel) const {
    if (k >= levels_.size()) return merged(k, column, channel);
    const Level& level = levels_[k];
    if (column < level.oldest || column > level.newest || count(level, column) == 0)
      return std::numeric_limits<Number>::quiet_NaN();
    return level.means[place(column) * channels_ + channel];
  }

 private:
  struct Level {
    Step oldest = 0, newest = -1;  // columns that it has
    std::vector<Number> means;     // a ring, by column and channel
    std::vector<std::uint32_t> counts;
  };

  // Until the last level has this step and the first one.
  void grow_to(Step step) {
    if (levels_.empty()) levels_.push_back(empty_level());
    while ((step >> (levels_.size() - 1)) - levels_.back().oldest >= static_cast<Step>(columns_))
      levels_.push_back(coarser(levels_.back()));
  }

  std::size_t place(Step column) const { return static_cast<std::size_t>(column) % columns_; }
  std::uint32_t count(const Level& level, Step column) const { return level.counts[place(column)]; }

  Level empty_level() const {
    return {0, -1, std::vector<Number>(columns_ * channels_), std::vector<std::uint32_t>(columns_)};
  }

  void clear(Level& level, Step column) const { level.counts[place(column)] = 0; }

  void put(Level& level, Step column, std::span<const Number> values, std::uint32_t weight) const {
    if (column < level.oldest) return;
    if (column - level.newest > static_cast<Step>(columns_))
      level.newest = column - static_cast<Step>(columns_);
    for (; level.newest < column; ++level.newest) clear(level, level.newest + 1);
    level.oldest = std::max(level.oldest, level.newest - static_cast<Step>(columns_) + 1);
    std::uint32_t& told = level.counts[place(column)];
    Number* const means = &level.means[place(column) * channels_];
    told += weight;
    for (std::size_t c = 0; c < channels_; ++c) {
      // A running mean, whose error does not grow with the number of steps as a sum's does.
      const Number share = static_cast<Number>(weight) / static_cast<Number>(told);
      if (told == weight || std::isnan(means[c])) {
        means[c] = values[c];
      } else if (!std::isnan(values[c])) {
        means[c] += (values[c] - means[c]) * share;
      }
    }
  }

  Level coarser(const Level& level) const {
    Level next = empty_level();
    for (Step column = level.oldest; column <= level.newest; ++column) {
      if (count(level, column) == 0) continue;
      put(next, column >> 1, {&level.means[place(column) * channels_], channels_}, count(level, column));
    }
    return next;
  }

  // A column is made of the level below, where that has all of it: later steps may have been in it.
  void make_anew(std::size_t k, Step column) {
    Level& level = levels_[k];
    const Level& finer = levels_[k - 1];
    if (column < level.oldest || column > level.newest || finer.oldest > column << 1) return;
    clear(level, column);
    for (Step each = column << 1; each <= std::min((column << 1) + 1, finer.newest); ++each) {
      if (count(finer, each) == 0) continue;
      put(level, column, {&finer.means[place(each) * channels_], channels_}, count(finer, each));
    }
  }

  bool reaches(std::size_t k, Step from) const {
    return k + 1 >= levels_.size() || levels_[k].oldest <= (from >> k);
  }

  // Made of the last level's columns, which a coarser one would have.
  Number merged(std::size_t k, Step column, std::size_t channel) const {
    if (levels_.empty()) return std::numeric_limits<Number>::quiet_NaN();
    const Level& last = levels_.back();
    const std::size_t up = k - (levels_.size() - 1);
    double sum = 0;
    std::uint64_t told = 0;
    const Step begin = std::max(column << up, last.oldest),
               end = std::min((column + 1) << up, last.newest + 1);
    for (Step each = begin; each < end; ++each) {
      const std::uint32_t weight = count(last, each);
      const auto value = static_cast<double>(last.means[place(each) * channels_ + channel]);
      if (weight == 0 || std::isnan(value)) continue;
      told += weight;
      sum += static_cast<double>(weight) * value;
    }
    return told == 0 ? std::numeric_limits<Number>::quiet_NaN()
                     : static_cast<Number>(sum / static_cast<double>(told));
  }

  std::size_t channels_, columns_;
  std::vector<Level> levels_;
};

}  // namespace paceline::dashboard

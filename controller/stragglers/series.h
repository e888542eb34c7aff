#pragma once

// A test whether one quantity stays above its normal, from one value a block. Pure.
//
// A value is the log of a ratio: a member's time over the other members' median. Page's cumulative sum
// (CUSUM, 1954) adds up how much likelier each value is where the true ratio is `factor` than where it is 1,
// both with normal noise. The width of the noise is measured: by the median of the differences of successive
// values, which a lasting change does not widen. A second sum is for kLarge times: where the noise is wide, a
// value far above it says little for a small factor.
//
// Invariants:
// 1. A sum lies between 0 and the threshold. A series is slow from the moment when a sum reaches the
//    threshold until both are back at 0: what is found takes as much evidence to be cleared.
// 2. One value moves a sum by kMostStep at most, so that a finding takes threshold / kMostStep blocks at
//    least. A pause, however long, moves it once.
// 3. Where values are independent and normal with ratio 1, a sum reaches the threshold once in about
//    e^threshold blocks.

#include <array>
#include <cstddef>
#include <cstdint>

namespace paceline::stragglers {

inline constexpr double kMostStep = 1.5, kLarge = 2;
// The threshold of each of `series` that are looked at together: any of them reaches it by chance once in
// e^kSurprise = 24 million blocks, two months of steps of 0.2 s.
inline constexpr double kSurprise = 17;
double threshold_of(std::size_t series);

// The width of the noise of the last values, in logs.
class Noise {
 public:
  static constexpr std::size_t kValues = 64;  // that are remembered
  static constexpr std::size_t kFew = 8;      // fewer say nothing

  void add(double value);
  bool is_known() const { return count_ >= kFew; }
  double width() const;  // a normal distribution's standard deviation; 0 where it is not known

 private:
  std::array<double, kValues> differences_{};
  std::size_t count_ = 0;
  double last_ = 0;
  bool begun_ = false;
};

class Series {
 public:
  // `factor` > 1: what is to be found.
  explicit Series(double factor);

  // `width`: of the noise, above 0.
  void add(double value, double width, double threshold);
  bool slow() const { return slow_; }
  double evidence() const { return evidence_; }  // of what it takes to be slow, 0 to 1
  bool suspect() const { return evidence_ > 0.5; }
  bool rises() const { return rises_; }  // since the block after the last one with both sums at 0

 private:
  std::array<double, 2> logs_;  // of the factors
  std::array<double, 2> sums_{};
  double evidence_ = 0;
  bool rises_ = false, slow_ = false;
};

}  // namespace paceline::stragglers

#pragma once

// Partial steps, after DropCompute (Giladi et al., NeurIPS 2023): a member that is out of time leaves out the
// rest of its samples, and the step is the mean over the samples that were used. Pure; one thread.
//
//   parts:  |--1--|--2--|--3--|-------4-------|          the next part would end beyond tau: the rest is left
//   out
//           begin of the step ..................... tau
//
// A member's samples of a step are cut into at most kMostParts parts of whole passes, and before each but the
// first it decides whether to go on. For kWindow whole steps members measure their parts, and sum their
// tables up over all members (each has zeros for the others), so that all hold the same one. From it all
// choose the same threshold
//   tau = argmax  used samples / all samples  x  (E[T] + Tc) / (E[T(tau)] + Tc)
// where T is the longest compute time of a step, T(tau) what it would have been with tau, and Tc the rest of
// the step. Thresholds that leave out more than `max_drop_rate` don't count, and one that gains less than
// kLeastGain is none. It, or that there is none, holds for kHold steps; then they measure anew.
//
// The paper has min(tau, T) for T(tau); here a part that has begun is done, and none begins that would end
// too late, in the model as in training. (The authors' program takes the mean of the quotients of steps; this
// is the quotient of the means, which is how long the training takes.)
//
// Never more than `max_drop_rate` of the samples since construction are left out, whatever happens: members
// go on where all together might leave out more in this step.

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"

namespace paceline::trainer {

class PartialSteps {
 public:
  static constexpr int kMostParts = 8;
  static constexpr int kWarmUp = 5;  // steps that are not measured
  static constexpr int kWindow = 50;
  static constexpr int kHold = 450;
  static constexpr double kLeastGain = 0.05;

  struct Threshold {
    Duration tau{};        // since the step's begin
    double gain = 0;       // used samples in the same time: more by this part
    double drop_rate = 0;  // of the window's samples
  };

  // `samples`: of each rank, of a step; a pass takes `pass` of them. `max_drop_rate` in [0, 1).
  PartialSteps(double max_drop_rate, std::int64_t pass, std::vector<std::int64_t> samples, int rank);
  // Whether anything can be left out: two members train, and one has two parts.
  bool possible() const { return possible_; }

  // One step of this member, where it is possible(); times are since its begin. Before each pass but the
  // first: whether it goes on, with so many samples done.
  bool goes_on(std::int64_t done, Duration since_begin);
  // All is done, or the rest was left out.
  void computed(Duration since_begin);
  // The step is applied; `left_out`: samples, of all members.
  void applied(Duration since_begin, std::int64_t left_out);
  // The time that the samples which this member left out would have taken, of the step at hand or the latest.
  Duration time_left_out() const { return time_left_out_; }

  // The window is full: before the next step the table is to be summed over all members, and choose() called.
  bool full() const { return measured_ == kWindow; }
  std::span<float> table() { return table_; }
  void choose();
  const std::optional<Threshold>& threshold() const { return threshold_; }

 private:
  // The window's steps, with a threshold.
  struct Outcome {
    double used = 0;     // of the samples, as a part
    double seconds = 0;  // of a step
  };
  int parts(std::size_t rank) const;
  std::int64_t part_samples(std::size_t rank) const;
  bool may_leave_out() const;
  void note_part(Duration since_begin);
  std::span<const float> measured(std::size_t step, std::size_t rank) const;
  void set_typical();
  Outcome outcome(double tau) const;

  const double max_drop_rate_;
  const std::int64_t pass_;
  const std::vector<std::int64_t> samples_;
  const std::size_t rank_;
  std::int64_t batch_ = 0, most_left_out_ = 0;  // of a step, by all
  bool possible_ = false;

  std::int64_t steps_ = 0, left_out_ = 0;  // since construction; left_out_: samples
  int measured_ = 0;                       // steps of the window
  std::vector<float> table_;               // seconds, by step and rank: of its parts, then of the whole step
  std::vector<float> typical_;             // by rank: seconds of a part in the last window
  std::optional<Threshold> threshold_;
  int holds_ = 0;  // it, or that there is none, for so many steps yet

  // The step under way, of this member.
  std::array<float, kMostParts> parts_{};
  int done_ = 0;
  Duration until_{};
  bool stopped_ = false;
  Duration time_left_out_{};
};

}  // namespace paceline::trainer

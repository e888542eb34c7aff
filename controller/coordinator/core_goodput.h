#pragma once

// The share of the job's time that went into steps that count, over all of its coordinators. Pure.
//
// Steps are as long as their mean: of the time of n steps that were taken, of which k were lost again,
// (n - k) / n counts. What earlier coordinators have counted shrinks likewise where training goes on from a
// step below their last one.

#include <optional>

#include "base/clock.h"
#include "base/ids.h"

namespace paceline::coordinator {

class Goodput {
 public:
  // By earlier coordinators, as the job's status has it.
  struct Before {
    Step step = 0;     // that they have reached
    double share = 0;  // of `seconds`
    double seconds = 0;
  };
  explicit Goodput(const Before& before);

  // REQUIRES: 0 <= step. `steps` more are applied, up to `step`, in `useful`.
  void taken(Step step, Step steps, Duration useful);
  // The steps beyond this one are lost, and are taken again.
  void goes_on_from(Step step);

  // `elapsed`: since this coordinator began.
  double seconds(Duration elapsed) const;
  double share(Duration elapsed) const;  // 0 to 1, of seconds()

 private:
  Before before_;
  double good_before_;
  std::optional<Step> begin_;  // where the first steps here began
  Step last_ = 0;
  double lost_ = 0, useful_ = 0;
};

}  // namespace paceline::coordinator

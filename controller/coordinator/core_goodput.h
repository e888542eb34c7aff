#pragma once

// The share of the job's time that went into steps that count, over all of its coordinators. Pure.
//
// Steps are as long as their mean: of the time of n steps that were taken, of which k were lost again,
// (n - k) / n counts. What earlier coordinators have counted shrinks likewise where training goes on from a
// step below their last one. Members go on without a coordinator: the steps and the time of that count for
// nobody.

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

  // REQUIRES: 0 <= step, 0 <= steps, 0 <= useful. `steps` more are applied, in `useful`; now it is `step`,
  // which may be beyond them, since what a heartbeat brings again is older than its step.
  void taken(Step step, Step steps, Duration useful, Duration elapsed);
  // The steps beyond this one are lost, and are taken again.
  void goes_on_from(Step step);

  // `elapsed`, here and above: since this coordinator began.
  double seconds(Duration elapsed) const;
  double share(Duration elapsed) const;  // 0 to 1, of seconds()

 private:
  // Steps of earlier coordinators beyond this one do not count.
  void keep_before(double step);

  double seconds_before_, good_before_, step_before_;
  Step last_ = 0;
  double counted_ = 0, lost_ = 0;  // steps that were taken in `useful_`
  double useful_ = 0;              // at most the time that has elapsed
};

}  // namespace paceline::coordinator

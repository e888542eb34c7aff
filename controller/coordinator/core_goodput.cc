#include "controller/coordinator/core_goodput.h"

#include <algorithm>

namespace paceline::coordinator {

namespace {

double as_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

Goodput::Goodput(const Before& before)
    : seconds_before_(before.seconds),
      good_before_(before.share * before.seconds),
      step_before_(static_cast<double>(before.step)) {}

void Goodput::taken(Step step, Step steps, Duration useful, Duration elapsed) {
  if (step < last_) goes_on_from(std::max<Step>(step - steps, 0));
  last_ = step;
  const double all = as_seconds(useful);
  const double here = std::clamp(as_seconds(elapsed) - useful_, 0.0, all);  // the rest: without a coordinator
  useful_ += here;
  if (all > 0)
    counted_ = std::min(counted_ + static_cast<double>(steps) * here / all, static_cast<double>(step));
  keep_before(static_cast<double>(step) - counted_);
}

void Goodput::goes_on_from(Step step) {
  if (step >= last_) return;
  const double lost = std::min(static_cast<double>(last_ - step), counted_);
  lost_ += lost;
  counted_ -= lost;
  last_ = step;
  keep_before(static_cast<double>(step));
}

void Goodput::keep_before(double step) {
  if (step >= step_before_) return;
  good_before_ *= step / step_before_;
  step_before_ = step;
}

double Goodput::seconds(Duration elapsed) const {
  return seconds_before_ + as_seconds(elapsed);
}

double Goodput::share(Duration elapsed) const {
  const double good = good_before_ + (lost_ == 0 ? useful_ : useful_ * counted_ / (counted_ + lost_));
  const double all = seconds(elapsed);
  return all > 0 ? std::clamp(good / all, 0.0, 1.0) : 0;
}

}  // namespace paceline::coordinator

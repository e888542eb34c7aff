#include "controller/coordinator/core_goodput.h"

#include <algorithm>

namespace paceline::coordinator {

namespace {

double as_seconds(Duration duration) {
  return std::chrono::duration<double>(duration).count();
}

double quotient(Step part, Step whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

Goodput::Goodput(const Before& before) : before_(before), good_before_(before.share * before.seconds) {}

void Goodput::taken(Step step, Step steps, Duration useful) {
  const Step begin = std::max<Step>(step - steps, 0);
  if (!begin_) {
    if (begin < before_.step) good_before_ *= quotient(begin, before_.step);
    begin_ = begin;
  } else if (step < last_) {
    goes_on_from(begin);
  }
  last_ = step;
  useful_ += as_seconds(useful);
}

void Goodput::goes_on_from(Step step) {
  if (!begin_ || step >= last_) return;
  lost_ += static_cast<double>(last_ - std::max(step, *begin_));
  if (step < *begin_) {
    good_before_ *= quotient(step, *begin_);
    begin_ = step;
  }
  last_ = step;
}

double Goodput::seconds(Duration elapsed) const {
  return before_.seconds + as_seconds(elapsed);
}

double Goodput::share(Duration elapsed) const {
  const double counted = begin_ ? static_cast<double>(last_ - *begin_) : 0;
  const double good = good_before_ + (lost_ == 0 ? useful_ : useful_ * counted / (counted + lost_));
  const double all = seconds(elapsed);
  return all > 0 ? std::clamp(good / all, 0.0, 1.0) : 0;
}

}  // namespace paceline::coordinator

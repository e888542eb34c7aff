#include "runtime/tensor/device_timer.h"

#include <utility>

#include "base/status.h"
#include "runtime/tensor/device.h"

namespace paceline::tensor {

absl::Status DeviceTimer::begin_pass(bool first_of_step) {
  const bool new_step = first_of_step || updated_;
  updated_ = false;
  return begin(Part::kPass, new_step);
}

absl::Status DeviceTimer::begin_update() {
  return begin(Part::kUpdate, std::exchange(updated_, true));
}

absl::Status DeviceTimer::begin(Part part, bool new_step) {
  if (!measures_.has_value()) {
    PL_ASSIGN_OR_RETURN(measures_, queue_.make_time_marks(2 * kIntervals));
  }
  if (!*measures_) return absl::OkStatus();
  if (std::exchange(open_, false)) --next_;  // it failed
  PL_RETURN_IF_ERROR(take_finished());
  if (next_ - oldest_ == kIntervals) take_oldest(std::nullopt);
  if (new_step) ++step_;
  intervals_[next_ % kIntervals] = {part, step_};
  open_ = true;
  return queue_.set_time_mark(mark(next_++));
}

absl::Status DeviceTimer::end() {
  if (!std::exchange(open_, false)) return absl::OkStatus();
  return queue_.set_time_mark(mark(next_ - 1) + 1);
}

absl::Status DeviceTimer::take_finished() {
  while (oldest_ < next_) {
    PL_ASSIGN_OR_RETURN(const std::optional<Duration> took,
                        queue_.time_between(mark(oldest_), mark(oldest_) + 1));
    if (!took.has_value()) return absl::OkStatus();
    take_oldest(took);
  }
  return absl::OkStatus();
}

void DeviceTimer::take_oldest(std::optional<Duration> took) {
  const Interval& interval = intervals_[oldest_++ % kIntervals];
  if (interval.step != gathered_step_) finish_step();
  gathered_step_ = interval.step;
  gathered_whole_ = gathered_whole_ && took.has_value();
  (interval.part == Part::kPass ? gathered_.passes : gathered_.update) += took.value_or(Duration());
  if (interval.part == Part::kUpdate) finish_step();
}

void DeviceTimer::finish_step() {
  if (std::exchange(gathered_step_, 0) == 0) return;
  const DeviceTimes times = std::exchange(gathered_, {});
  const bool whole = std::exchange(gathered_whole_, true);
  if (whole) last_ = times;
  if (sums_ == nullptr) return;
  auto sums = sums_->lock();
  if (!whole) {
    ++sums->not_measured;
    return;
  }
  ++sums->steps;
  sums->times.passes += times.passes;
  sums->times.update += times.update;
}

}  // namespace paceline::tensor

#pragma once

// How long a device with a queue works for a step, by its own clock: for the passes, and for the update.
// Nobody waits for it: the begin and the end of each are marked in the queue, and what the device has passed
// is read when the next one begins. At most kIntervals are under way; one that the device has not finished
// when its place is needed again is not measured, nor is its step.
//
// Of one queue, in whose order the work is; its thread. Sums may be read by any.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/guarded.h"

namespace paceline::tensor {

class Queue;

// Of one step, or a sum. What lies between a step's passes, and between them and the update, is in neither.
struct DeviceTimes {
  Duration passes{};  // forward and backward, with what is copied in the same queue meanwhile
  Duration update{};
  bool operator==(const DeviceTimes&) const = default;
};

// Since the begin.
struct DeviceTimeSums {
  std::int64_t steps = 0;  // that are measured
  DeviceTimes times;       // of them
  std::int64_t not_measured = 0;
  bool operator==(const DeviceTimeSums&) const = default;
};

class DeviceTimer {
 public:
  static constexpr std::size_t kIntervals = 32;

  // `queue` owns it.
  explicit DeviceTimer(Queue& queue) : queue_(queue) {}
  DeviceTimer(const DeviceTimer&) = delete;
  DeviceTimer& operator=(const DeviceTimer&) = delete;

  // What is added to the queue until end() is this. Of a device without a clock nothing is measured. Errors:
  // the queue's.
  absl::Status begin_pass(bool first_of_step);
  absl::Status begin_update();  // the last of a step, or all of it
  absl::Status end();

  // The last step that is measured; zeros at first.
  const DeviceTimes& last() const { return last_; }
  // Where its sums go, too. Before the first begin.
  using Sums = Guarded<DeviceTimeSums>;
  void collect_into(std::shared_ptr<Sums> sums) { sums_ = std::move(sums); }

 private:
  enum class Part : std::uint8_t { kPass, kUpdate };
  struct Interval {
    Part part = Part::kPass;
    std::uint64_t step = 0;
  };
  absl::Status begin(Part part, bool new_step);
  absl::Status take_finished();
  void take_oldest(std::optional<Duration> took);
  void finish_step();
  std::size_t mark(std::size_t interval) const { return 2 * (interval % kIntervals); }

  Queue& queue_;
  std::optional<bool> measures_;  // nothing: not asked yet
  std::array<Interval, kIntervals> intervals_;
  std::size_t oldest_ = 0, next_ = 0;  // [oldest_, next_) are under way, the last one open where open_ is
  bool open_ = false;
  std::uint64_t step_ = 0;
  bool updated_ = true;  // step_ has had its update

  std::uint64_t gathered_step_ = 0;  // 0: none
  bool gathered_whole_ = true;
  DeviceTimes gathered_;
  DeviceTimes last_;
  std::shared_ptr<Sums> sums_;
};

}  // namespace paceline::tensor

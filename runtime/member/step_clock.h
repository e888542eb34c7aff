#pragma once

// Where a step's time goes: every nanosecond between begin() and end() belongs to the part that is current
// then, and what no scope holds to kCompute: the loop's own work. One thread; about two reads of the clock
// for each scope. Scopes nest: the inner one's time isn't the outer one's.
//
//   steps.begin();
//   { auto s = steps.part(StepPart::kInput); batch = next(); }
//   { auto s = steps.part(StepPart::kWait); exchange.finish(d); steps.move(StepPart::kWait,
//   StepPart::kTransfer, exchange.last_times().transfer); } StepTimes times = steps.end();

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <utility>

#include "base/clock.h"

namespace paceline::member {

enum class StepPart : std::uint8_t { kInput, kCompute, kWait, kTransfer, kUpdate, kCheckpoint, kNone };
inline constexpr std::size_t kStepParts = 7;

// Nanoseconds. `step` is the whole step: the sum of the parts. `left_out` is beside it: what the samples that
// the member left out of the step would have taken to compute.
struct StepTimes {
  std::int64_t input = 0, compute = 0, wait = 0, transfer = 0, update = 0, checkpoint = 0, step = 0;
  std::int64_t left_out = 0;
  std::int64_t parts() const { return input + compute + wait + transfer + update + checkpoint; }
};

// The part that is current now, for other threads to see. The part and its begin lie in one word, so that
// both are of one moment; writing is one store.
class CurrentPart {
 public:
  struct Seen {
    StepPart part = StepPart::kNone;
    TimePoint since{};
    bool operator==(const Seen&) const = default;
  };
  void set(StepPart part, TimePoint since) {
    const auto time = static_cast<std::uint64_t>(since.time_since_epoch().count());
    word_.store(time << kBits | static_cast<std::uint64_t>(part), std::memory_order_release);
  }
  Seen seen() const {
    const std::uint64_t word = word_.load(std::memory_order_acquire);
    const auto part = static_cast<StepPart>(word & ((1U << kBits) - 1));
    return {part, TimePoint(Duration(static_cast<std::int64_t>(word) >> kBits))};
  }

 private:
  static constexpr int kBits = 3;  // for the part; the rest are nanoseconds for 36 years
  static_assert(kStepParts <= 1U << kBits);
  std::atomic<std::uint64_t> word_{static_cast<std::uint64_t>(StepPart::kNone)};
};

class StepClock {
 public:
  // `current` outlives this; null: nobody looks.
  explicit StepClock(const Clock& clock, CurrentPart* current = nullptr)
      : clock_(&clock), current_part_(current) {}

  class Scope {
   public:
    Scope(Scope&& other) noexcept : clock_(std::exchange(other.clock_, nullptr)), before_(other.before_) {}
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;
    Scope& operator=(Scope&&) = delete;
    ~Scope() {
      if (clock_ != nullptr) clock_->enter(before_);
    }

   private:
    friend class StepClock;
    Scope(StepClock* clock, StepPart before) : clock_(clock), before_(before) {}
    StepClock* clock_;
    StepPart before_;
  };

  // A step starts now; what was counted since an unfinished begin() is forgotten.
  void begin() {
    spent_.fill(0);
    set_current(StepPart::kCompute, clock_->now());
  }

  [[nodiscard]] Scope part(StepPart part) {
    const StepPart before = current_;
    enter(part);
    return Scope(this, before);
  }

  // Time up to now that was counted as `from` was really `to`: at most what `from` has.
  void move(StepPart from, StepPart to, Duration time) {
    count(clock_->now());
    std::int64_t& source = spent_[static_cast<std::size_t>(from)];
    const std::int64_t moved = std::clamp<std::int64_t>(time.count(), 0, source);
    source -= moved;
    spent_[static_cast<std::size_t>(to)] += moved;
  }

  // Of the time up to now that was counted as `from`, what is beyond `own` was really `to`, at most `most`.
  void move_beyond(StepPart from, Duration own, StepPart to, Duration most) {
    count(clock_->now());
    move(from, to, std::min(Duration(spent_[static_cast<std::size_t>(from)]) - own, most));
  }

  // The step is over, or is abandoned.
  StepTimes end() {
    enter(StepPart::kNone);
    const auto of = [this](StepPart part) { return spent_[static_cast<std::size_t>(part)]; };
    StepTimes times{of(StepPart::kInput),    of(StepPart::kCompute), of(StepPart::kWait),
                    of(StepPart::kTransfer), of(StepPart::kUpdate),  of(StepPart::kCheckpoint)};
    times.step = times.parts();
    return times;
  }

 private:
  void enter(StepPart part) {
    const TimePoint now = clock_->now();
    count(now);
    set_current(part, now);
  }

  void count(TimePoint now) {
    spent_[static_cast<std::size_t>(current_)] += (now - since_).count();
    since_ = now;
  }

  void set_current(StepPart part, TimePoint now) {
    current_ = part;
    since_ = now;
    if (current_part_ != nullptr) current_part_->set(part, now);
  }

  const Clock* clock_;
  CurrentPart* current_part_;
  std::array<std::int64_t, kStepParts> spent_{};
  StepPart current_ = StepPart::kNone;
  TimePoint since_{};
};

}  // namespace paceline::member

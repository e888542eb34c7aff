#pragma once

// Virtual time: what happens next, in order of time and, at one time, of when it was asked for. One thread; a
// world's whole past follows from its seed, since nothing else decides what is next.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>

#include "base/clock.h"
#include "base/rng.h"

namespace paceline::simulation {

class Events {
 public:
  using Action = std::function<void()>;

  TimePoint now() const { return now_; }
  Duration elapsed() const { return now_ - kBegin; }
  void at(TimePoint when, Action action) {
    waiting_.emplace(std::pair(std::max(when, now_), ++number_), std::move(action));
  }
  void after(Duration wait, Action action) { at(now_ + wait, std::move(action)); }
  // The next event, unless it is later than `limit`: time is `limit` then, and the result false.
  bool run_next(TimePoint limit) {
    if (waiting_.empty() || waiting_.begin()->first.first > limit) {
      now_ = std::max(now_, limit);
      return false;
    }
    auto next = waiting_.extract(waiting_.begin());
    now_ = next.key().first;
    ++count_;
    next.mapped()();
    return true;
  }
  std::uint64_t count() const { return count_; }

 private:
  static constexpr TimePoint kBegin{std::chrono::hours(1)};
  TimePoint now_ = kBegin;
  std::map<std::pair<TimePoint, std::uint64_t>, Action> waiting_;
  std::uint64_t number_ = 0, count_ = 0;
};

// A machine's clocks: the monotonic one is the world's, the wall's may jump.
class VirtualClock final : public Clock {
 public:
  explicit VirtualClock(const Events& events) : events_(events) {}
  TimePoint now() const override { return events_.now(); }
  WallTime wall_now() const override {
    constexpr std::chrono::hours kSince1970(24 * 365 * 56);
    return WallTime(events_.now().time_since_epoch() + kSince1970 + offset_);
  }
  void jump(Duration by) { offset_ += by; }

 private:
  const Events& events_;
  Duration offset_{};
};

// An actor: it may stand still, and then does late what it was to do meanwhile, or end, and then does nothing
// more.
class Process {
 public:
  explicit Process(Events& events) : events_(events), state_(std::make_shared<State>()) {}
  ~Process() { kill(); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void after(Duration wait, Events::Action action) {
    events_.after(wait, [state = state_, action = std::move(action)]() mutable {
      if (!state->alive) return;
      if (state->paused) return state->missed.push_back(std::move(action));
      action();
    });
  }
  void soon(Events::Action action) { after(Duration::zero(), std::move(action)); }
  void pause() {
    if (!std::exchange(state_->paused, true)) state_->paused_at = events_.now();
  }
  void resume() {
    if (!std::exchange(state_->paused, false)) return;
    for (Events::Action& action : std::exchange(state_->missed, {})) soon(std::move(action));
  }
  void kill() { state_->alive = false; }
  bool alive() const { return state_->alive; }
  bool paused() const { return state_->paused; }
  Duration paused_for() const { return paused() ? events_.now() - state_->paused_at : Duration::zero(); }

 private:
  struct State {
    bool alive = true, paused = false;
    TimePoint paused_at{};
    std::deque<Events::Action> missed;
  };
  Events& events_;
  const std::shared_ptr<State> state_;
};

// A seed's random choices for one purpose.
class Dice {
 public:
  Dice(std::uint64_t seed, std::uint64_t purpose) : rng_(seed, purpose) {}
  bool chance(double part) { return static_cast<double>(rng_.below(1'000'000)) < part * 1e6; }
  std::int64_t between(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(most - least + 1)));
  }
  Duration between(Duration least, Duration most) { return Duration(between(least.count(), most.count())); }
  template <typename List>
  auto& one_of(List& list) {
    return list[static_cast<std::size_t>(rng_.below(list.size()))];
  }

 private:
  Rng rng_;
};

}  // namespace paceline::simulation

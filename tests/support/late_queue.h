#pragma once

// A queue of a device of the tests, whose memory is the host's: work is done as late as it may be, when
// somebody waits for a mark. Who reads what nobody waited for reads something old. Its clock: each piece of
// work takes a millisecond, or what the test says, but for those that tell the time.

#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "runtime/tensor/device.h"

namespace paceline {

class LateQueue final : public tensor::Queue {
 public:
  using Work = std::function<absl::Status()>;
  enum class AtEnd : std::uint8_t { kForgets, kFinishes };  // what it was given, when it goes
  explicit LateQueue(AtEnd at_end = AtEnd::kForgets) : at_end_(at_end) {}
  LateQueue(const LateQueue&) = delete;
  LateQueue& operator=(const LateQueue&) = delete;
  ~LateQueue() override {
    if (at_end_ == AtEnd::kFinishes) state_->do_until(state_->work.size()).IgnoreError();
    state_->work.clear();
    state_->done = kGone;
  }

  void add(Work work) { state_->work.push_back(std::move(work)); }
  Duration piece = std::chrono::milliseconds(1);
  // The work that is being done takes so much more.
  void take(Duration time) { state_->taken += time; }

  absl::Status upload(void* to, std::span<const std::byte> from) override {
    return copy(to, from.data(), from.size());
  }
  absl::Status download(std::span<std::byte> to, const void* from) override {
    return copy(to.data(), from, to.size());
  }
  absl::Status copy(void* to, const void* from, std::size_t bytes) override {
    add([=] {
      std::memcpy(to, from, bytes);
      return absl::OkStatus();
    });
    return absl::OkStatus();
  }
  absl::Status clear(void* address, std::size_t bytes) override {
    add([=] {
      std::memset(address, 0, bytes);
      return absl::OkStatus();
    });
    return absl::OkStatus();
  }
  absl::Status set_mark(std::size_t number) override {
    marks_[number] = state_->work.size();
    return absl::OkStatus();
  }
  absl::Status wait_for_mark(std::size_t number) override { return state_->do_until(marks_.at(number)); }
  absl::StatusOr<bool> make_time_marks(std::size_t count) override {
    times_.resize(count);
    return true;
  }
  absl::Status set_time_mark(std::size_t number) override {
    times_[number] = {state_->work.size(), std::nullopt};
    add([this, number, place = state_->work.size()] {
      State& s = *state_;
      ++s.told;
      if (times_[number].place == place)
        times_[number].passed = static_cast<std::int64_t>(s.done - s.told) * piece + s.taken;
      return absl::OkStatus();
    });
    return absl::OkStatus();
  }
  absl::StatusOr<std::optional<Duration>> time_between(std::size_t from, std::size_t to) override {
    if (!times_[from].passed || !times_[to].passed) return std::nullopt;
    return *times_[to].passed - *times_[from].passed;
  }
  // The other queue may be gone by the time that the work is done.
  absl::Status follow(const Queue& other, std::size_t number) override {
    const auto& before = static_cast<const LateQueue&>(other);
    add([state = before.state_, until = before.marks_.at(number)] { return state->do_until(until); });
    return absl::OkStatus();
  }

 private:
  static constexpr std::size_t kGone = SIZE_MAX;
  struct State {
    std::vector<Work> work;
    std::size_t done = 0;
    Duration taken{};
    std::size_t told = 0;  // pieces of work that told the time

    absl::Status do_until(std::size_t end) {
      while (done < end) PL_RETURN_IF_ERROR(std::exchange(work[done++], nullptr)());
      return absl::OkStatus();
    }
  };

  const AtEnd at_end_;
  const std::shared_ptr<State> state_ = std::make_shared<State>();
  std::map<std::size_t, std::size_t> marks_;
  struct Time {
    std::size_t place = 0;  // of the work that tells it
    std::optional<Duration> passed;
  };
  std::vector<Time> times_;
};

}  // namespace paceline

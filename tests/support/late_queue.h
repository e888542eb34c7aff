#pragma once

// A queue of a device of the tests, whose memory is the host's: work is done as late as it may be, when
// somebody waits for a mark. Who reads what nobody waited for reads something old. Its clock: each piece of
// work takes a millisecond, or what the test says, but for those that tell the time.

#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/status.h"
#include "runtime/tensor/device.h"

namespace paceline::testing {

class LateQueue final : public tensor::Queue {
 public:
  using Work = std::function<absl::Status()>;
  void add(Work work) { work_.push_back(std::move(work)); }
  Duration piece = std::chrono::milliseconds(1);
  // The work that is being done takes so much more.
  void take(Duration time) { taken_ += time; }

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
    marks_[number] = work_.size();
    return absl::OkStatus();
  }
  absl::Status wait_for_mark(std::size_t number) override { return do_until(marks_.at(number)); }
  absl::StatusOr<bool> make_time_marks(std::size_t count) override {
    times_.resize(count);
    return true;
  }
  absl::Status set_time_mark(std::size_t number) override {
    times_[number] = {work_.size(), std::nullopt};
    add([this, number, place = work_.size()] {
      ++told_;
      if (times_[number].place == place)
        times_[number].passed = static_cast<std::int64_t>(done_ - told_) * piece + taken_;
      return absl::OkStatus();
    });
    return absl::OkStatus();
  }
  absl::StatusOr<std::optional<Duration>> time_between(std::size_t from, std::size_t to) override {
    if (!times_[from].passed || !times_[to].passed) return std::nullopt;
    return *times_[to].passed - *times_[from].passed;
  }
  absl::Status follow(const Queue& other, std::size_t number) override {
    auto& before = const_cast<LateQueue&>(static_cast<const LateQueue&>(other));
    add([&before, until = before.marks_.at(number)] { return before.do_until(until); });
    return absl::OkStatus();
  }

 private:
  absl::Status do_until(std::size_t end) {
    while (done_ < end) PL_RETURN_IF_ERROR(std::exchange(work_[done_++], nullptr)());
    return absl::OkStatus();
  }

  std::vector<Work> work_;
  std::size_t done_ = 0;
  std::map<std::size_t, std::size_t> marks_;
  Duration taken_{};
  std::size_t told_ = 0;  // pieces of work that told the time
  struct Time {
    std::size_t place = 0;  // of the work that tells it
    std::optional<Duration> passed;
  };
  std::vector<Time> times_;
};

}  // namespace paceline::testing

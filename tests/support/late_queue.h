#pragma once

// A queue of a device of the tests, whose memory is the host's: work is done as late as it may be, when
// somebody waits for a mark. Who reads what nobody waited for reads something old.

#include <cstring>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "runtime/tensor/device.h"

namespace paceline::testing {

class LateQueue final : public tensor::Queue {
 public:
  using Work = std::function<absl::Status()>;
  void add(Work work) { work_.push_back(std::move(work)); }

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
};

}  // namespace paceline::testing

#include "runtime/exchange/staged_exchange.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "base/status.h"
#include "runtime/exchange/buckets.h"

namespace paceline::exchange {

namespace {

absl::Status device_fault(const absl::Status& status) {
  return status.ok() ? status
                     : absl::InternalError(str_cat("this member's device failed: ", status.message()));
}

class StagedExchange final : public GradientExchange {
 public:
  StagedExchange(std::unique_ptr<GradientExchange> host, tensor::Queue& queue, float* gradient,
                 std::size_t elements, std::span<float> staging, bool alone)
      : host_(std::move(host)),
        queue_(queue),
        gradient_(gradient),
        elements_(elements),
        staging_(staging),
        alone_(alone) {}

  absl::Status begin_step(Step step, Duration late) override {
    on_their_way_.clear();
    return host_->begin_step(step, late);
  }

  absl::Status range_ready(std::size_t begin, std::size_t end) override {
    if (alone_ || begin >= elements_) return host_->range_ready(begin, end);
    PL_RETURN_IF_ERROR(device_fault(
        queue_.download(std::as_writable_bytes(staging_.subspan(begin, end - begin)), gradient_ + begin)));
    PL_RETURN_IF_ERROR(device_fault(queue_.set_mark(tensor::kMarksOfExchange + on_their_way_.size())));
    on_their_way_.push_back({begin, end});
    return absl::OkStatus();
  }

  absl::Status wait_for_device() override {
    for (std::size_t i = 0; i < on_their_way_.size(); ++i) {
      PL_RETURN_IF_ERROR(device_fault(queue_.wait_for_mark(tensor::kMarksOfExchange + i)));
      PL_RETURN_IF_ERROR(host_->range_ready(on_their_way_[i].begin, on_their_way_[i].end));
    }
    on_their_way_.clear();
    return absl::OkStatus();
  }

  absl::Status finish(Deadline deadline) override {
    PL_RETURN_IF_ERROR(wait_for_device());
    PL_RETURN_IF_ERROR(host_->finish(deadline));
    if (alone_) return absl::OkStatus();
    return device_fault(queue_.upload(gradient_, std::as_bytes(staging_.first(elements_))));
  }

  ExchangeTimes last_times() const override { return host_->last_times(); }
  void close(absl::Status reason) override { host_->close(std::move(reason)); }

 private:
  const std::unique_ptr<GradientExchange> host_;
  tensor::Queue& queue_;
  float* const gradient_;
  const std::size_t elements_;
  const std::span<float> staging_;
  const bool alone_;
  std::vector<Bucket> on_their_way_;  // range i is there at mark i
};

}  // namespace

std::unique_ptr<GradientExchange> make_staged_exchange(std::unique_ptr<GradientExchange> host,
                                                       tensor::Queue& queue, float* gradient,
                                                       std::size_t elements, std::span<float> staging,
                                                       bool alone) {
  return std::make_unique<StagedExchange>(std::move(host), queue, gradient, elements, staging, alone);
}

}  // namespace paceline::exchange

#include "runtime/exchange/staged_exchange.h"

#include <cstddef>
#include <utility>
#include <vector>

#include "base/status.h"
#include "runtime/exchange/buckets.h"

namespace paceline::exchange {

namespace {

// Of the queue of the programs: behind what computes the range that was declared last.
constexpr std::size_t kComputedMark = tensor::kMarksOfExchange;
// Of the side queue.
constexpr std::size_t kUploadedMark = tensor::kMarksOfExchange;
constexpr std::size_t kDownloadedMarks = tensor::kMarksOfExchange + 1;  // and one more for each range

absl::Status device_fault(const absl::Status& status) {
  return status.ok() ? status
                     : absl::InternalError(str_cat("this member's device failed: ", status.message()));
}

class StagedExchange final : public GradientExchange {
 public:
  StagedExchange(std::unique_ptr<GradientExchange> host, tensor::Queue& queue,
                 std::unique_ptr<tensor::Queue> side, float* gradient, std::size_t elements,
                 std::span<float> staging)
      : host_(std::move(host)),
        queue_(queue),
        gradient_(gradient),
        elements_(elements),
        staging_(staging),
        side_(std::move(side)) {
    if (side_ != nullptr) host_->set_on_summed([this](std::size_t from) { upload(from); });
  }

  absl::Status begin_step(Step step, Duration late) override {
    on_their_way_.clear();
    uploaded_from_ = elements_;
    upload_status_ = absl::OkStatus();
    return host_->begin_step(step, late);
  }

  absl::Status range_ready(std::size_t begin, std::size_t end) override {
    if (side_ == nullptr || begin >= elements_) return host_->range_ready(begin, end);
    PL_RETURN_IF_ERROR(device_fault(download({begin, end})));
    on_their_way_.push_back({begin, end});
    return absl::OkStatus();
  }

  absl::Status wait_for_device() override {
    for (std::size_t i = 0; i < on_their_way_.size(); ++i) {
      PL_RETURN_IF_ERROR(device_fault(side_->wait_for_mark(kDownloadedMarks + i)));
      PL_RETURN_IF_ERROR(host_->range_ready(on_their_way_[i].begin, on_their_way_[i].end));
    }
    on_their_way_.clear();
    return absl::OkStatus();
  }

  absl::Status finish(Deadline deadline) override {
    PL_RETURN_IF_ERROR(wait_for_device());
    PL_RETURN_IF_ERROR(host_->finish(deadline));
    if (side_ == nullptr) return absl::OkStatus();
    upload(0);
    PL_RETURN_IF_ERROR(device_fault(upload_status_));
    PL_RETURN_IF_ERROR(device_fault(side_->set_mark(kUploadedMark)));
    return device_fault(queue_.follow(*side_, kUploadedMark));
  }

  ExchangeTimes last_times() const override { return host_->last_times(); }
  void close(absl::Status reason) override { host_->close(std::move(reason)); }

 private:
  absl::Status download(const Bucket& range) {
    PL_RETURN_IF_ERROR(queue_.set_mark(kComputedMark));
    PL_RETURN_IF_ERROR(side_->follow(queue_, kComputedMark));
    PL_RETURN_IF_ERROR(side_->download(std::as_writable_bytes(staging_.subspan(range.begin, range.size())),
                                       gradient_ + range.begin));
    return side_->set_mark(kDownloadedMarks + on_their_way_.size());
  }

  // The sum, from element `from` on, of which the end is on its way.
  void upload(std::size_t from) {
    if (!upload_status_.ok() || from >= uploaded_from_) return;
    upload_status_ =
        side_->upload(gradient_ + from, std::as_bytes(staging_.subspan(from, uploaded_from_ - from)));
    uploaded_from_ = from;
  }

  const std::unique_ptr<GradientExchange> host_;
  tensor::Queue& queue_;
  float* const gradient_;
  const std::size_t elements_;
  const std::span<float> staging_;
  std::vector<Bucket> on_their_way_;     // of the step, to the host: range i is there at mark i
  std::size_t uploaded_from_ = 0;        // of the step: where what is on its way back begins
  absl::Status upload_status_;           // of the step
  std::unique_ptr<tensor::Queue> side_;  // null: alone. Last: its copies end before anything else goes
};

}  // namespace

std::unique_ptr<GradientExchange> make_staged_exchange(std::unique_ptr<GradientExchange> host,
                                                       tensor::Queue& queue,
                                                       std::unique_ptr<tensor::Queue> side, float* gradient,
                                                       std::size_t elements, std::span<float> staging) {
  return std::make_unique<StagedExchange>(std::move(host), queue, std::move(side), gradient, elements,
                                          staging);
}

}  // namespace paceline::exchange

#include "runtime/tensor/device_copies.h"

#include <array>

#include "base/status.h"

namespace paceline::tensor {

namespace {
constexpr std::size_t kResultBytes = 64;  // three doubles

constexpr std::size_t kResultMark = kMarksOfPrograms;
constexpr std::size_t kUploadedMark = kMarksOfPrograms;  // of the side queue

constexpr std::array kInputs = {BatchPart::kInputs, BatchPart::kTokens, BatchPart::kLabels,
                                BatchPart::kOffsets};
}  // namespace

absl::StatusOr<std::unique_ptr<DeviceCopies>> DeviceCopies::make(Device& device, Queue& queue,
                                                                 const BatchAreas& areas, std::byte* staging,
                                                                 std::size_t elements, bool training) {
  std::unique_ptr<DeviceCopies> copies(new DeviceCopies(device, queue, areas, staging, elements, training));
  PL_ASSIGN_OR_RETURN(copies->batch_, device.allocate(areas.bytes() + kResultBytes));
  PL_ASSIGN_OR_RETURN(copies->result_, device.allocate_staging(kResultBytes));
  ExternalMemory& memory = copies->memory_;
  memory = areas.addresses(copies->batch_->data());
  memory.result = reinterpret_cast<double*>(copies->batch_->data() + areas.bytes());
  return copies;
}

absl::Status DeviceCopies::make_vectors() {
  PL_RETURN_IF_ERROR(device_.enter());
  if (training_) {
    PL_ASSIGN_OR_RETURN(gradients_, device_.allocate(elements_ * sizeof(float)));
    memory_.gradients = reinterpret_cast<float*>(gradients_->data());
  }
  PL_ASSIGN_OR_RETURN(weights_, device_.allocate(elements_ * sizeof(float)));
  memory_.weights = reinterpret_cast<float*>(weights_->data());
  return absl::OkStatus();
}

void DeviceCopies::bind(std::span<float> weights, std::span<float> gradients) {
  const auto take = [&](std::span<float>& bound, std::shared_ptr<const void>& pinned, std::span<float> now) {
    if (bound.data() == now.data() && bound.size() == now.size()) return;
    pinned.reset();
    bound = now;
    if (!now.empty()) pinned = device_.pin(std::as_writable_bytes(now));
  };
  take(bound_weights_, pinned_weights_, weights);
  take(bound_gradients_, pinned_gradients_, gradients);
  uploaded_version_ = 0;
  beside_ = false;
}

absl::Status DeviceCopies::bind_on_device() {
  beside_ = training_;
  if (!beside_ || side_ != nullptr) return absl::OkStatus();
  PL_RETURN_IF_ERROR(device_.enter());
  PL_ASSIGN_OR_RETURN(landing_, device_.allocate(areas_.input_bytes()));
  PL_ASSIGN_OR_RETURN(side_, device_.open_queue());
  return absl::OkStatus();
}

absl::Status DeviceCopies::release_vectors() {
  if (weights_ == nullptr) return absl::OkStatus();
  PL_RETURN_IF_ERROR(device_.enter());
  PL_RETURN_IF_ERROR(queue_.set_mark(kResultMark));
  PL_RETURN_IF_ERROR(queue_.wait_for_mark(kResultMark));
  bind({}, {});
  weights_.reset();
  gradients_.reset();
  memory_.weights = nullptr;
  memory_.gradients = nullptr;
  return absl::OkStatus();
}

absl::Status DeviceCopies::download_part(BatchPart part, std::int64_t rows) {
  const std::size_t begin = areas_.begin(part), bytes = areas_.elements(part, rows) * 4;
  return bytes == 0 ? absl::OkStatus()
                    : queue_.download(std::span(staging_ + begin, bytes), batch_->data() + begin);
}

std::size_t DeviceCopies::vector_bytes() const {
  return (weights_ == nullptr ? 0 : 1 + (training_ ? 1 : 0)) * elements_ * sizeof(float);
}

std::size_t DeviceCopies::batch_bytes() const {
  return areas_.bytes() + (landing_ == nullptr ? 0 : areas_.input_bytes());
}

absl::Status DeviceCopies::upload_batch(std::int64_t rows) {
  Queue& queue = beside_ ? *side_ : queue_;
  std::byte* const to = (beside_ ? landing_ : batch_)->data();
  if (beside_ && marked_) PL_RETURN_IF_ERROR(side_->follow(queue_, kResultMark));
  for (const BatchPart part : kInputs) {
    const std::size_t begin = areas_.begin(part), bytes = areas_.elements(part, rows) * 4;
    if (bytes > 0) PL_RETURN_IF_ERROR(queue.upload(to + begin, std::span(staging_ + begin, bytes)));
  }
  if (!beside_) return absl::OkStatus();
  PL_RETURN_IF_ERROR(side_->set_mark(kUploadedMark));
  return queue_.follow(*side_, kUploadedMark);
}

absl::Status DeviceCopies::take_batch(std::int64_t rows) {
  if (!beside_) return absl::OkStatus();
  for (const BatchPart part : kInputs) {
    const std::size_t begin = areas_.begin(part), bytes = areas_.elements(part, rows) * 4;
    if (bytes > 0) PL_RETURN_IF_ERROR(queue_.copy(batch_->data() + begin, landing_->data() + begin, bytes));
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> DeviceCopies::upload_weights(std::uint64_t version) {
  const bool makes = weights_ == nullptr;
  if (makes) PL_RETURN_IF_ERROR(make_vectors());
  if (uploaded_version_ == version) return makes;
  PL_RETURN_IF_ERROR(queue_.upload(weights_->data(), std::as_bytes(bound_weights_)));
  uploaded_version_ = version;
  return makes;
}

absl::Status DeviceCopies::download_result(std::int64_t rows) {
  PL_RETURN_IF_ERROR(download_part(BatchPart::kScores, rows));
  return queue_.download(std::span(result_->data(), kResultBytes), memory_.result);
}

absl::Status DeviceCopies::mark_result() {
  marked_ = true;
  return queue_.set_mark(kResultMark);
}

absl::StatusOr<const double*> DeviceCopies::wait_for_result() {
  PL_RETURN_IF_ERROR(queue_.wait_for_mark(kResultMark));
  return reinterpret_cast<const double*>(result_->data());
}

absl::Status DeviceCopies::download_gradients(std::size_t begin, std::size_t end) {
  return queue_.download(std::as_writable_bytes(bound_gradients_.subspan(begin, end - begin)),
                         memory_.gradients + begin);
}

absl::Status DeviceCopies::download_batch_gradients(std::int64_t rows) {
  PL_RETURN_IF_ERROR(download_part(BatchPart::kInputGradients, rows));
  return download_part(BatchPart::kOffsetGradients, rows);
}

}  // namespace paceline::tensor

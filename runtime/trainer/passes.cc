#include "runtime/trainer/passes.h"

#include <algorithm>
#include <functional>

#include "base/rng.h"
#include "base/status.h"
#include "runtime/trainer/batch.h"
#include "runtime/trainer/plan.h"

namespace paceline::trainer {

namespace {
constexpr std::uint64_t kAugmentationStream = 0x6175676d656e7401u;
}  // namespace

absl::Status own_fault(const absl::Status& device_error) {
  return absl::InternalError(str_cat("this member's device failed: ", device_error.message()));
}

absl::Status input_error(const absl::Status& error, std::string_view what) {
  using enum absl::StatusCode;
  const bool late =
      error.code() == kDeadlineExceeded || error.code() == kCancelled || error.code() == kOutOfRange;
  const absl::StatusCode code = error.code() == kResourceExhausted ? kResourceExhausted
                                : late                             ? kInternal
                                                                   : kDataLoss;
  return absl::Status(code, str_cat(what, ": ", error.message()));
}

std::uint64_t augmentation_seed(const v1::TrainingSpec& spec, std::int64_t step) {
  if (!spec.data().has_augmentation()) return 0;
  return mix64(mix64(spec.seed() + kAugmentationStream) + static_cast<std::uint64_t>(step)) | 1;
}

absl::Status Passes::run(const data::Batch& batch, const BeforeLast& before_last,
                         const tensor::Program::OnReady& on_ready) {
  const float scale = 1.0F / static_cast<float>(spec_.global_batch_size());
  const std::int64_t all = batch.rows(), most = pass_rows(spec_, all, trainers_);
  data::Batch inputs = batch;
  if (rows_ != nullptr) inputs.tokens = {};  // looked up already
  double loss_sum = 0;
  for (std::int64_t at = 0; at < all; at += most) {
    if (at > 0 && goes_on_ != nullptr && !goes_on_(at)) {
      PL_RETURN_IF_ERROR(before_last(loss_sum));
      on_ready(0, program_.parameters().elements);
      return absl::OkStatus();
    }
    const std::int64_t rows = std::min(most, all - at);
    copy_rows(inputs, at, rows, shape_, program_.batch());
    if (rows_ != nullptr) rows_->gather(at, rows, program_.batch());
    const bool last = at + rows == all;
    absl::Status heard;
    const auto on_result = [&](const tensor::ForwardResult& result) {
      loss_sum += result.loss_sum;
      if (at == 0 && before_gradient_ != nullptr) before_gradient_();
      if (last) heard = before_last(loss_sum);
      return heard;
    };
    const absl::Status passed =
        program_.pass(rows, scale, at > 0, std::cref(on_result), last ? on_ready : not_yet_);
    if (!heard.ok()) return heard;
    if (!passed.ok()) return own_fault(passed);
    if (rows_ != nullptr) rows_->scatter(at, rows, program_.batch());
  }
  return absl::OkStatus();
}

}  // namespace paceline::trainer

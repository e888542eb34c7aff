#include "runtime/generate/scorer.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "runtime/model/gpt.h"
#include "runtime/tensor/memory_plan.h"
#include "runtime/tensor/schedule.h"

namespace paceline::generate {

absl::StatusOr<tensor::ParameterLayout> weights_layout(const v1::GptSpec& spec) {
  tensor::GraphBuilder graph;
  PL_RETURN_IF_ERROR(model::build_gpt_scores(spec, 1, graph));
  return tensor::lay_out_parameters(graph);
}

absl::StatusOr<std::unique_ptr<Scorer>> Scorer::create(v1::GptSpec spec, tensor::Precision precision,
                                                       std::shared_ptr<tensor::Device> device,
                                                       std::vector<float> weights) {
  PL_ASSIGN_OR_RETURN(const tensor::ParameterLayout layout, weights_layout(spec));
  PL_CHECK(weights.size() == layout.elements, "the weights are the model's");
  std::unique_ptr<Scorer> scorer(
      new Scorer(std::move(spec), precision, std::move(device), std::move(weights)));
  PL_RETURN_IF_ERROR(scorer->to_device());
  return scorer;
}

absl::Status Scorer::to_device() {
  PL_RETURN_IF_ERROR(device_->enter());
  PL_ASSIGN_OR_RETURN(queue_, device_->open_queue());
  if (queue_ == nullptr) return absl::OkStatus();
  const std::span<const std::byte> bytes = std::as_bytes(std::span(weights_));
  auto memory = device_->allocate(bytes.size());
  if (absl::IsResourceExhausted(memory.status())) {
    return absl::ResourceExhaustedError(
        str_cat("out of memory: the weights need ", tensor::mebibytes(bytes.size()), " MiB, and ",
                memory.status().message(), "; PACELINE_DEVICE=cpu computes on the processors"));
  }
  PL_RETURN_IF_ERROR(memory.status());
  device_weights_ = *std::move(memory);
  PL_RETURN_IF_ERROR(queue_->upload(device_weights_->data(), bytes));
  PL_RETURN_IF_ERROR(queue_->set_mark(tensor::kMarksOfState));
  PL_RETURN_IF_ERROR(queue_->wait_for_mark(tensor::kMarksOfState));
  weights_ = {};
  return absl::OkStatus();
}

std::int64_t Scorer::length_for(std::int64_t tokens) const {
  std::int64_t length = kShortest;
  while (length < tokens && length < spec_.block_size()) length *= 2;
  return std::min(length, spec_.block_size());
}

absl::Status Scorer::make_program(std::int64_t length) {
  if (length == length_) return absl::OkStatus();
  program_.reset();
  length_ = 0;
  tensor::GraphBuilder graph;
  PL_RETURN_IF_ERROR(model::build_gpt_scores(spec_, length, graph));
  PL_ASSIGN_OR_RETURN(
      program_,
      tensor::compile(
          graph, *device_,
          {.max_rows = 1, .precision = precision_, .mode = tensor::Mode::kInference, .queue = queue_}));
  if (queue_ == nullptr) {
    program_->bind(weights_, {});
  } else {
    PL_RETURN_IF_ERROR(
        program_->bind_on_device({reinterpret_cast<float*>(device_weights_->data()), nullptr, &version_}));
  }
  length_ = length;
  return absl::OkStatus();
}

absl::StatusOr<std::span<const float>> Scorer::after(std::span<const std::int32_t> tokens) {
  PL_CHECK(!tokens.empty(), "something follows at least one token");
  const auto count = std::min(static_cast<std::int64_t>(tokens.size()), spec_.block_size());
  PL_RETURN_IF_ERROR(make_program(length_for(count)));
  const tensor::BatchMemory batch = program_->batch();
  const auto window = tokens.last(static_cast<std::size_t>(count));
  // What comes behind them is not seen from their last position.
  std::fill(std::copy(window.begin(), window.end(), batch.tokens.begin()), batch.tokens.end(), 0);
  batch.labels[0] = static_cast<std::int32_t>(count - 1);
  PL_RETURN_IF_ERROR(program_->forward(1).status());
  return program_->batch().scores;
}

}  // namespace paceline::generate

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
  length_ = kNone;
  tensor::GraphBuilder graph;
  PL_RETURN_IF_ERROR(length == kStep ? model::build_gpt_step(spec_, graph)
                                     : model::build_gpt_prefill(spec_, length, graph));
  PL_ASSIGN_OR_RETURN(program_, tensor::compile(graph, *device_,
                                                {.max_rows = 1,
                                                 .precision = precision_,
                                                 .mode = tensor::Mode::kInference,
                                                 .queue = queue_,
                                                 .cache = cache_}));
  if (queue_ == nullptr) {
    program_->bind(weights_, {});
  } else {
    PL_RETURN_IF_ERROR(
        program_->bind_on_device({reinterpret_cast<float*>(device_weights_->data()), nullptr, &version_}));
  }
  length_ = length;
  return absl::OkStatus();
}

absl::StatusOr<std::span<const float>> Scorer::pass() {
  const auto count = static_cast<std::int64_t>(window_.size());
  PL_RETURN_IF_ERROR(make_program(length_for(count)));
  const tensor::BatchMemory batch = program_->batch();
  // Their last position does not see the zeros behind them, and the cache's positions there are written
  // before they are read.
  std::fill(std::copy(window_.begin(), window_.end(), batch.tokens.begin()), batch.tokens.end(), 0);
  batch.labels[0] = static_cast<std::int32_t>(count - 1);
  PL_RETURN_IF_ERROR(program_->forward(1).status());
  return program_->batch().scores;
}

absl::StatusOr<std::span<const float>> Scorer::step(std::size_t position) {
  PL_RETURN_IF_ERROR(make_program(kStep));
  const tensor::BatchMemory batch = program_->batch();
  batch.tokens[0] = window_[position];
  batch.labels[0] = static_cast<std::int32_t>(position);
  PL_RETURN_IF_ERROR(program_->forward(1).status());
  return program_->batch().scores;
}

absl::StatusOr<std::span<const float>> Scorer::steps() {
  for (std::size_t position = 0; position + 1 < window_.size(); ++position)
    PL_RETURN_IF_ERROR(step(position).status());
  return step(window_.size() - 1);
}

absl::StatusOr<std::span<const float>> Scorer::begin(std::span<const std::int32_t> tokens) {
  PL_CHECK(!tokens.empty(), "something follows at least one token");
  if (std::equal(tokens.begin(), tokens.end(), first_.begin(), first_.end())) {
    window_ = first_;
    return first_scores_;
  }
  first_.clear();
  const auto block = static_cast<std::size_t>(spec_.block_size());
  const auto last = tokens.last(std::min(tokens.size(), block));
  window_.assign(last.begin(), last.end());
  PL_ASSIGN_OR_RETURN(const std::span<const float> scores,
                      window_.size() <= static_cast<std::size_t>(kFew) ? steps() : pass());
  first_scores_.assign(scores.begin(), scores.end());
  if (tokens.size() <= block) first_ = window_;
  return first_scores_;
}

absl::StatusOr<std::span<const float>> Scorer::next(std::int32_t token) {
  PL_CHECK(!window_.empty(), "begin() comes before next()");
  if (window_.size() < static_cast<std::size_t>(spec_.block_size())) {
    window_.push_back(token);
    return step(window_.size() - 1);
  }
  first_.clear();  // the cache is written over
  window_.erase(window_.begin());
  window_.push_back(token);
  return pass();
}

}  // namespace paceline::generate

#pragma once

// A gpt's weights on a device, and the scores of what follows some tokens.
//
// Each call is a forward pass over the tokens: no keys and values are kept. The pass is one of a few lengths,
// kShortest and its doubles up to the model's block, so that little text costs little; the program of one
// length is kept at a time, because on processors each has weights of its own form. One thread.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/tensor/compiler.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/program.h"

namespace paceline::generate {

// How the weights of a gpt lie in one vector, as in its checkpoints. INVALID_ARGUMENT names the field of the
// spec.
absl::StatusOr<tensor::ParameterLayout> weights_layout(const v1::GptSpec& spec);

class Scorer {
 public:
  static constexpr std::int64_t kShortest = 32;

  // `weights` lie as weights_layout() says; where the device has memory of its own they go there, and the
  // host's are given back. The device's errors; RESOURCE_EXHAUSTED where it has too little memory.
  static absl::StatusOr<std::unique_ptr<Scorer>> create(v1::GptSpec spec, tensor::Precision precision,
                                                        std::shared_ptr<tensor::Device> device,
                                                        std::vector<float> weights);

  // By token of the vocabulary. Of more tokens than a block has, the last count, and the first of those
  // stands at the model's first position. Valid until the next call. The device's errors. REQUIRES: at least
  // one token, all of the vocabulary.
  absl::StatusOr<std::span<const float>> after(std::span<const std::int32_t> tokens);

  const v1::GptSpec& spec() const { return spec_; }
  // Positions of the pass for so many tokens.
  std::int64_t length_for(std::int64_t tokens) const;

 private:
  Scorer(v1::GptSpec spec, tensor::Precision precision, std::shared_ptr<tensor::Device> device,
         std::vector<float> weights)
      : spec_(std::move(spec)),
        precision_(precision),
        device_(std::move(device)),
        weights_(std::move(weights)) {}
  absl::Status to_device();
  absl::Status make_program(std::int64_t length);

  const v1::GptSpec spec_;
  const tensor::Precision precision_;
  const std::shared_ptr<tensor::Device> device_;
  std::vector<float> weights_;            // empty: they are the device's
  std::shared_ptr<tensor::Queue> queue_;  // null: the device's memory is the host's
  std::unique_ptr<tensor::DeviceMemory> device_weights_;
  const std::uint64_t version_ = 1;  // of the weights, which never change
  std::unique_ptr<tensor::Program> program_;
  std::int64_t length_ = 0;  // of the program
};

}  // namespace paceline::generate

#pragma once

// A gpt's weights on a device, and the scores of what follows some tokens.
//
// A prefill computes all of the first tokens in one pass and leaves their keys and values in a key/value
// cache; a decode step then computes one token, whose attention reads them. The step is the way of few first
// tokens, too: it needs no other form of the weights. Beyond the model's block the window slides: every token
// stands at another position than before, what the cache holds is of no use, and each token costs a pass over
// the last block.
//
// A pass is one of a few lengths, kShortest and its doubles up to the block, so that little text costs
// little. One program is kept at a time, of a length or of the step, because on processors each has weights
// of its own form. One thread.

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
  static constexpr std::int64_t kFew = 8;  // tokens that steps compute, and no prefill

  // `weights` lie as weights_layout() says; where the device has memory of its own they go there, and the
  // host's are given back. The device's errors; RESOURCE_EXHAUSTED where it has too little memory.
  static absl::StatusOr<std::unique_ptr<Scorer>> create(v1::GptSpec spec, tensor::Precision precision,
                                                        std::shared_ptr<tensor::Device> device,
                                                        std::vector<float> weights);

  // The scores of the token that follows `tokens`, by token of the vocabulary. Of more tokens than a block
  // has, the last count, and the first of those stands at the model's first position. The same tokens give
  // the same bits, whatever was asked before; those of the last begin() cost nothing. Valid until the next
  // call. The device's errors. REQUIRES: at least one token, all of the vocabulary.
  absl::StatusOr<std::span<const float>> begin(std::span<const std::int32_t> tokens);
  // `token` comes behind those of begin() and of each next() since then: the scores of the token that follows
  // it, likewise. REQUIRES: a begin(); a token of the vocabulary.
  absl::StatusOr<std::span<const float>> next(std::int32_t token);

  const v1::GptSpec& spec() const { return spec_; }
  // The pass for so many tokens has this many positions.
  std::int64_t length_for(std::int64_t tokens) const;

 private:
  static constexpr std::int64_t kNone = -1, kStep = 0;

  Scorer(v1::GptSpec spec, tensor::Precision precision, std::shared_ptr<tensor::Device> device,
         std::vector<float> weights)
      : spec_(std::move(spec)),
        precision_(precision),
        device_(std::move(device)),
        weights_(std::move(weights)),
        cache_(std::make_shared<tensor::KeyValueCache>()) {}
  absl::Status to_device();
  // `length` is a pass's, or kStep.
  absl::Status make_program(std::int64_t length);
  // The scores behind the window: by a pass over all of it, by the step of its token at `position`, where the
  // cache holds those before it, and by steps from the first on.
  absl::StatusOr<std::span<const float>> pass();
  absl::StatusOr<std::span<const float>> step(std::size_t position);
  absl::StatusOr<std::span<const float>> steps();

  const v1::GptSpec spec_;
  const tensor::Precision precision_;
  const std::shared_ptr<tensor::Device> device_;
  std::vector<float> weights_;            // empty: they are the device's
  std::shared_ptr<tensor::Queue> queue_;  // null: the device's memory is the host's
  std::unique_ptr<tensor::DeviceMemory> device_weights_;
  const std::uint64_t version_ = 1;  // of the weights, which never change
  const std::shared_ptr<tensor::KeyValueCache> cache_;
  std::unique_ptr<tensor::Program> program_;
  std::int64_t length_ = kNone;       // of the program
  std::vector<std::int32_t> window_;  // the tokens that count, at most a block
  // The last begin() left these tokens, as long as the cache holds theirs, and the scores behind them.
  std::vector<std::int32_t> first_;
  std::vector<float> first_scores_;
};

}  // namespace paceline::generate

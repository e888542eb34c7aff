#pragma once

// A data set: numbered samples of one shape. Immutable after it was opened; any number of threads may read.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace paceline::data {

enum class InputKind : std::uint8_t { kFloats, kTokens };

// The form of one sample.
struct SampleShape {
  InputKind kind = InputKind::kFloats;
  std::vector<std::int64_t> dims;   // kFloats: e.g. {1, 28, 28}; kTokens: {block_size}
  std::int64_t labels = 1;          // labels per sample: 1 class, or block_size next tokens
  std::int64_t classes = 0;         // number of classes or the vocabulary's size; 0: not known from the data
  std::int64_t smallest_label = 0;  // labels are smallest_label to classes - 1, where classes comes from them
  // The number of values of each field, where kTokens are categories, one of each field; empty: not known.
  std::vector<std::int64_t> vocabularies = {};
  std::int64_t elements() const {
    std::int64_t n = 1;
    for (const auto d : dims) n *= d;
    return n;
  }
};

// The memory that fetch() fills with a batch; the caller owns it. Row i is sample indices[i].
struct BatchView {
  std::span<float> inputs;         // kFloats: rows * elements()
  std::span<std::int32_t> tokens;  // kTokens: rows * block_size
  std::span<std::int32_t> labels;  // rows * shape.labels
};

class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual const SampleShape& shape() const = 0;
  virtual std::int64_t size() const = 0;
  // Fills `batch` with the samples `indices`, each in [0, size()). `augmentation_seed` decides flips and
  // crops by sample index, so that every member fetches the same; 0 means none. Allocates nothing.
  virtual absl::Status fetch(std::span<const std::int64_t> indices, std::uint64_t augmentation_seed,
                             const BatchView& batch) const = 0;
  // The place that a sample comes from, for messages: "x.npy: sample 3".
  virtual std::string place_of(std::int64_t index) const { return "sample " + std::to_string(index); }
};

}  // namespace paceline::data

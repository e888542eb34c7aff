#pragma once

// Specs of data sets for the tests, and what opening and reading them gives.

#include <cstdint>
#include <initializer_list>
#include <numeric>
#include <string>
#include <vector>

#include "runtime/data/open.h"

namespace paceline::data {

struct Rows {
  absl::Status status;
  std::vector<float> inputs;
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> labels;
  bool operator==(const Rows&) const = default;
};

inline Rows fetch(const Dataset& set, const std::vector<std::int64_t>& indices,
                  std::uint64_t augmentation_seed = 0) {
  const SampleShape& shape = set.shape();
  Rows rows;
  const std::size_t elements = indices.size() * static_cast<std::size_t>(shape.elements());
  (shape.kind == InputKind::kFloats) ? rows.inputs.resize(elements) : rows.tokens.resize(elements);
  rows.labels.resize(indices.size() * static_cast<std::size_t>(shape.labels));
  rows.status = set.fetch(indices, augmentation_seed, {rows.inputs, rows.tokens, rows.labels});
  return rows;
}

inline Rows fetch_all(const Dataset& set) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(set.size()));
  std::iota(indices.begin(), indices.end(), 0);
  return fetch(set, indices);
}

// Numbers of `size` bytes, the greatest byte first.
inline std::string big(std::initializer_list<std::uint64_t> numbers, int size) {
  std::string bytes;
  for (const std::uint64_t n : numbers) {
    for (int i = size - 1; i >= 0; --i) bytes += static_cast<char>(n >> (8 * i) & 255);
  }
  return bytes;
}

inline v1::DataSpec spec_of(v1::DataSpec::Format format, std::vector<std::string> inputs,
                            std::vector<std::string> labels = {}) {
  v1::DataSpec spec;
  spec.set_format(format);
  spec.set_label_column(-1);
  for (const auto& path : inputs) spec.mutable_train()->add_inputs(path);
  for (const auto& path : labels) spec.mutable_train()->add_labels(path);
  return spec;
}

inline std::string error_of(const v1::DataSpec& spec, const OpenOptions& options = {}) {
  const auto sets = open_datasets(spec, options);
  return sets.ok() ? "no error" : std::string(sets.status().message());
}

}  // namespace paceline::data

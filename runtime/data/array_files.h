#pragma once

// Reads the files of the array formats (IDX, .npy, CIFAR-10, CSV) into rows and labels. Thread-safe.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/array_dataset.h"
#include "runtime/data/formats.h"
#include "runtime/data/input_file.h"

namespace paceline::data {

struct LabelledRows {
  ArrayRows rows;
  std::vector<std::int32_t> labels;
};

using Files = std::span<const std::shared_ptr<const InputFile>>;

// Several files of one set are concatenated; their rows have one shape and type. Rows of two dimensions
// become images of one channel. INVALID_ARGUMENT names the file. `inputs` isn't empty.
absl::StatusOr<LabelledRows> read_idx(Files inputs, Files labels);
absl::StatusOr<LabelledRows> read_npy(Files inputs, Files labels);
absl::StatusOr<LabelledRows> read_cifar10(Files inputs);
absl::StatusOr<LabelledRows> read_csv(Files inputs, const CsvOptions& options);

}  // namespace paceline::data

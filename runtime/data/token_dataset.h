#pragma once

// Blocks of tokens with their successors as labels: sample i is tokens [i * block, (i + 1) * block) of the
// concatenated files, its labels are the tokens one further. The last tokens that don't fill a block and its
// successor are left out.

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/data/dataset.h"
#include "runtime/data/input_file.h"
#include "runtime/data/inspection.h"

namespace paceline::data {

enum class TokenWidth : std::uint8_t { kByte = 1, kUint16 = 2, kUint32 = 4 };

// `vocabulary` > 0: fetch() fails with INVALID_ARGUMENT on a token that is not below it (naming file and
// byte); 0: tokens must be below 2^31. INVALID_ARGUMENT here: a file's size isn't a multiple of the width, a
// file begins with a header or seems to have tokens of another width, or there is less than one sample.
absl::StatusOr<std::shared_ptr<const FileDataset>> make_token_dataset(
    std::vector<std::shared_ptr<const InputFile>> files, TokenWidth width, std::int64_t block_size,
    std::int64_t vocabulary);

}  // namespace paceline::data

#pragma once

// What a user writes as tokens, by the format of the job's data: text is bytes, all else numbers. Pure.

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/paceline/v1/training.pb.h"

namespace paceline::cli {

enum class Writing : std::uint8_t { kBytes, kNumbers };
Writing writing_of(const v1::DataSpec& data);
inline constexpr std::int64_t kByteTokens = 256;

// A token for each byte. INVALID_ARGUMENT names the first character that is none of the vocabulary's.
absl::StatusOr<std::vector<std::int32_t>> tokens_of_text(std::string_view text, std::int64_t vocabulary);

// Whole numbers with commas or white space between them, as `generate` prints them. INVALID_ARGUMENT names
// the first word that is none, or not below the vocabulary's size.
absl::StatusOr<std::vector<std::int32_t>> tokens_of_numbers(std::string_view list, std::int64_t vocabulary);

}  // namespace paceline::cli

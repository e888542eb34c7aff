#pragma once

// Which peer an error of a communicator is about, as data beside the text: callers report a rank, they don't
// parse messages. Pure.

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"
#include "base/text.h"

namespace paceline::collective {

inline constexpr char kFaultyRankPayload[] = "paceline.dev/faulty-rank";

// The same error, said to be about `rank`. OK stays OK.
inline absl::Status with_faulty_rank(absl::Status status, int rank) {
  if (!status.ok()) status.SetPayload(kFaultyRankPayload, absl::Cord(str_cat(rank)));
  return status;
}

// The rank that was gone, refused, or waited for; nothing where the error names none.
inline std::optional<int> faulty_rank(const absl::Status& status) {
  const auto payload = status.GetPayload(kFaultyRankPayload);
  int rank = 0;
  if (!payload.has_value() || !absl::SimpleAtoi(std::string(*payload), &rank)) return std::nullopt;
  return rank;
}

}  // namespace paceline::collective

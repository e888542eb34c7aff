#pragma once

// How errors travel: absl::Status and absl::StatusOr, never exceptions of ours. Callers branch on codes,
// never on text. A message names the job, host, rank, step, field or byte that is wrong, and what to do about
// it.

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/text.h"

namespace paceline {

// The same code, with `context: ` in front of the message. OK stays OK.
inline absl::Status with_context(const absl::Status& status, std::string_view context) {
  if (status.ok()) return status;
  return absl::Status(status.code(), str_cat(context, ": ", status.message()));
}

}  // namespace paceline

#define PL_CONCAT_INNER(a, b) a##b
#define PL_CONCAT(a, b) PL_CONCAT_INNER(a, b)

// Returns from the function when `expression` (an absl::Status) is not OK.
#define PL_RETURN_IF_ERROR(expression)     \
  do {                                     \
    absl::Status pl_status = (expression); \
    if (!pl_status.ok()) [[unlikely]]      \
      return pl_status;                    \
  } while (false)

// PL_ASSIGN_OR_RETURN(auto value, expression): unpacks an absl::StatusOr or returns its status.
#define PL_ASSIGN_OR_RETURN(lhs, expression) \
  PL_ASSIGN_OR_RETURN_IMPL(PL_CONCAT(pl_statusor_, __LINE__), lhs, expression)
#define PL_ASSIGN_OR_RETURN_IMPL(var, lhs, expression) \
  auto var = (expression);                             \
  if (!var.ok()) [[unlikely]]                          \
    return std::move(var).status();                    \
  lhs = *std::move(var)

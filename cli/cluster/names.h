#pragma once

// How people name jobs, and members of a job. Pure.

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/ids.h"

namespace paceline::cli {

// "digits", and as kubectl prints and takes it: "tj/digits", "trainingjob/digits",
// "trainingjob.paceline.dev/digits", "trainingjobs/...". INVALID_ARGUMENT for what is no job's name.
absl::StatusOr<std::string> job_name_of(std::string_view text);

// As -o name prints it: "trainingjob.paceline.dev/digits".
std::string resource_name(std::string_view job);

// One member ("worker/3", "worker-3"), or all of one role ("worker").
struct MemberPattern {
  std::optional<Role> role;  // absent: all members
  std::optional<int> index;  // absent: all of the role
  bool matches(Role of, int at) const { return (!role || *role == of) && (!index || *index == at); }
};
// Empty text: all. INVALID_ARGUMENT says what is allowed.
absl::StatusOr<MemberPattern> member_pattern(std::string_view text);

}  // namespace paceline::cli

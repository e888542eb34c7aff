#pragma once

// A view as the data network sees it. Pure.

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/paceline/v1/coordinator.pb.h"
#include "runtime/collective/fabric.h"

namespace paceline::trainer {

// This member's place in a view. Its key for links is the job's, bound to the view's members: others of the
// job have none that fits. INVALID_ARGUMENT: the view or the key isn't as it must be, or it lacks the
// member.
absl::StatusOr<collective::Group> group_of(const v1::View& view, const std::string& member_id,
                                           const v1::Welcome& welcome);
bool is_in(const v1::View& view, const std::string& member_id);
std::vector<double> shares_of(const v1::View& view);

}  // namespace paceline::trainer

#pragma once

// The actions that people may take on a job now, and the patches that do them. Pure.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "controller/cluster/kube/json.h"

namespace paceline::dashboard {

enum class Action : std::uint8_t { kSuspend, kResume, kScale, kCheckpoint, kReplace, kDelete };

// suspend, resume, scale, checkpoint, replace, delete.
std::string_view name(Action action);
std::optional<Action> action_named(std::string_view name);

// Why the job's state does not allow it, in a sentence without a full stop; empty: it does.
std::string why_not(Action action, const kube::Json& object);

// {"suspend": {"allowed": true}, "resume": {"allowed": false, "why": "it is not suspended"}, ...}
kube::Json actions_json(const kube::Json& object,
                        const std::function<std::string(Action, const kube::Json&)>& why_not);

// The merge patch of suspend, resume and scale. `body`: the request's. INVALID_ARGUMENT: a body that says no
// allowed number; FAILED_PRECONDITION: the job can't be run as it is.
absl::StatusOr<kube::Json> patch_of(Action action, const kube::Json& object, const kube::Json& body);

}  // namespace paceline::dashboard

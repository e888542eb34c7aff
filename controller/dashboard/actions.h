#pragma once

// The actions that people may take on a job now, and what does them. Pure.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "controller/cluster/kube/json.h"

namespace paceline::dashboard {

enum class Action : std::uint8_t { kSuspend, kResume, kScale, kCheckpoint, kReplace, kDelete };

// suspend, resume, scale, checkpoint, replace, delete.
std::string_view name(Action action);

// Why the job's state does not allow it, in a sentence without a full stop; empty: it does.
std::string why_not(Action action, const kube::Json& object);

// Rights of somebody on a job.
struct Rights {
  bool update = true, remove = true;
  auto operator<=>(const Rights&) const = default;
};

// {"suspend": {"allowed": true}, "resume": {"allowed": false, "why": "it is not suspended"}, ...}
kube::Json actions_json(const kube::Json& object, const Rights& rights,
                        const std::function<std::string(Action, const kube::Json&)>& why_not);

// An action as it is done to a job, and for people: what was asked, and what the answer says.
struct Deed {
  kube::Json patch;         // a merge patch; of kDelete null
  std::string asked, done;  // "scale it from 3 to 4 workers"; "default/digits is being scaled to 4 workers"
};
// `body`: the request's; `now`: makes a request another one than those before. INVALID_ARGUMENT: a body that
// says no allowed number, or no member; FAILED_PRECONDITION: the job can't be run as it is, or does not
// allow it.
absl::StatusOr<Deed> deed_of(Action action, const kube::Json& object, const kube::Json& body, WallTime now);

}  // namespace paceline::dashboard

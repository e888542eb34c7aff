// top: the live view of a job, from its status and its pods. An API server that does not answer is asked
// again, more and more seldom, until the user has enough; what was seen last stays.

#include <algorithm>

#include "base/sanitize.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/cluster/call.h"
#include "cli/cluster/job_view.h"
#include "cli/view/live.h"
#include "controller/cluster/kube/job_object.h"
#include "controller/cluster/kube/times.h"

namespace paceline::cli {

namespace {

constexpr Duration kLongestWait = std::chrono::seconds(30);  // between two looks without an answer

bool no_answer(const absl::Status& status) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status);
}

absl::StatusOr<RunState> look_at(Call& call, const std::string& name) {
  PL_ASSIGN_OR_RETURN(const kube::Json object, call.jobs.job(call.ns, name));
  PL_ASSIGN_OR_RETURN(const std::vector<kube::SlimPod> pods, call.jobs.pods(call.ns, name));
  const api::Parsed parsed = kube::parse_job(object, kube::job_metadata(object));
  RunState state =
      run_state_of(read_job(object), parsed.job ? &*parsed.job : nullptr, pods, call.clock.wall_now());
  state.message = sanitize(state.message);
  return state;
}

}  // namespace

absl::Status top_job(Call& call, const TopOptions& options) {
  PL_ASSIGN_OR_RETURN(const kube::Json first, call.jobs.choose(call.ns, options.name));
  const std::string name = kube::text_at(first, {"metadata", "name"});
  std::optional<RunState> last;
  WallTime heard{};
  std::string trouble;  // why there is no answer
  Duration wait = options.interval;
  LiveView view{.terminal = call.terminal};
  view.once = options.once;
  view.look = [&]() -> absl::StatusOr<RunState> {
    auto state = look_at(call, name);
    if (last && no_answer(state.status())) {
      if (!trouble.empty()) wait = std::max(options.interval, std::min(2 * wait, kLongestWait));
      trouble = sanitize(std::string(state.status().message()));
      return *last;
    }
    if (!state.ok()) return state;
    heard = call.clock.wall_now();
    trouble.clear();
    wait = options.interval;
    last = *state;
    return state;
  };
  view.wait = [&] { return call.pause(wait, call.stop); };
  view.note = [&] {
    if (!trouble.empty()) return str_cat("no answer since ", kube::format_seconds(heard), ": ", trouble);
    return last && is_stale(*last) ? last->message : std::string();
  };
  if (call.terminal.interactive) view.size = [] { return detect_terminal(1); };
  const absl::Status status = show_live(call.out, view);
  return absl::IsCancelled(status) ? absl::OkStatus() : status;  // ctrl-C is how it ends
}

}  // namespace paceline::cli

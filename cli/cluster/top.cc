// top: the live view of a job, from its status and its pods.

#include "base/status.h"
#include "cli/cluster/call.h"
#include "cli/cluster/job_view.h"
#include "cli/view/live.h"
#include "controller/cluster/kube/job_object.h"

namespace paceline::cli {

namespace {

constexpr int kMaxMissed = 10;  // looks in a row without an answer

absl::StatusOr<RunState> look_at(Call& call, const std::string& name) {
  PL_ASSIGN_OR_RETURN(const kube::Json object, call.client.job(call.ns, name));
  PL_ASSIGN_OR_RETURN(const std::vector<kube::SlimPod> pods, call.client.pods(call.ns, name));
  const api::Parsed parsed = kube::parse_job(object, kube::job_metadata(object));
  RunState state =
      run_state_of(read_job(object), parsed.job ? &*parsed.job : nullptr, pods, call.clock.wall_now());
  state.message = visible(state.message);
  return state;
}

}  // namespace

absl::Status top_job(Call& call, const TopOptions& options) {
  PL_ASSIGN_OR_RETURN(const kube::Json first, call.client.choose(call.ns, options.name));
  const std::string name = kube::text_at(first, {"metadata", "name"});
  std::optional<RunState> last;
  int missed = 0;
  LiveView view{.terminal = call.terminal};
  view.once = options.once;
  view.look = [&]() -> absl::StatusOr<RunState> {
    auto state = look_at(call, name);
    const bool no_answer = absl::IsUnavailable(state.status()) || absl::IsDeadlineExceeded(state.status());
    if (no_answer && last && ++missed <= kMaxMissed) return *last;  // what is shown stays
    if (!state.ok()) return state;
    missed = 0;
    last = *state;
    return state;
  };
  view.wait = [&] { return call.pause(options.interval, call.client.stop()); };
  if (call.terminal.interactive) view.size = [] { return detect_terminal(1); };
  const absl::Status status = show_live(call.out, view);
  return absl::IsCancelled(status) ? absl::OkStatus() : status;  // ctrl-C is how it ends
}

}  // namespace paceline::cli

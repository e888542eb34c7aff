#include "controller/dashboard/job_actions.h"

#include <memory>
#include <string>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "controller/dashboard/answers.h"

namespace paceline::dashboard {

namespace {

using kube::Json;
using web::HttpAnswer;

std::string verb_text(Action action, const std::string& job) {
  switch (action) {
    case Action::kSuspend:
      return str_cat(job, " is being suspended: its members save a checkpoint and stop");
    case Action::kResume:
      return str_cat(job, " goes on, from its newest checkpoint");
    case Action::kScale:
      return str_cat(job, " is being scaled");
    default:
      return str_cat(job, " is being deleted");
  }
}

}  // namespace

absl::Status JobActions::perform(const Call& call, Action action, const Json& patch) {
  const std::string& ns = kube::text_at(*call.object, {"metadata", "namespace"});
  const std::string& name = kube::text_at(*call.object, {"metadata", "name"});
  PL_ASSIGN_OR_RETURN(const auto source, place_.source(call.viewer));
  if (action == Action::kDelete) return source->remove(ns, name, "Background").status();
  Json same = patch;  // not another job that has taken its name
  same["metadata"]["uid"] = kube::text_at(*call.object, {"metadata", "uid"});
  return source->patch(ns, name, same, std::string(dashboard::name(action))).status();
}

void JobActions::act(Call call, Action action) {
  const auto note = [audit = audit_, viewer = call.viewer, action,
                     key = call.key](const std::string& result) {
    if (audit) audit(viewer, action, key, result);
  };
  if (const std::string why = board_.why_not(action, *call.object); !why.empty()) {
    note(str_cat("refused: ", why));
    return call.answer(error_answer(absl::FailedPreconditionError(str_cat(call.key, ": ", why))));
  }
  Json body = Json::object();
  if (!call.request.body.empty()) {
    auto parsed = kube::parse_json(call.request.body);
    if (!parsed.ok()) return call.answer(error_answer(absl::InvalidArgumentError("the body is no JSON")));
    body = *std::move(parsed);
  }
  const auto answer = call.answer;
  const bool taken = workers_.post(
      [this, action, note, call = std::move(call), body = std::move(body)](const std::stop_token&) {
        const auto patch = action == Action::kDelete ? absl::StatusOr<Json>(Json::object())
                                                     : patch_of(action, *call.object, body);
        if (!patch.ok()) {
          note(str_cat("refused: ", patch.status().message()));
          return call.answer(error_answer(patch.status()));
        }
        const std::string done =
            str_cat(call.viewer.user, " asked by the dashboard to ", dashboard::name(action), " it");
        place_.record(*call.object, false, "UserAction", done);
        const bool at_once = action == Action::kDelete && place_.removes_slowly();
        const HttpAnswer accepted = json_answer(kube::dump({{"message", verb_text(action, call.key)}}), 202);
        if (at_once) call.answer(accepted);
        const absl::Status status = perform(call, action, *patch);
        note(status.ok() ? "done" : str_cat("failed: ", status.message()));
        if (!status.ok())
          place_.record(*call.object, true, "UserActionFailed", str_cat(done, ": ", status.message()));
        if (!at_once) call.answer(status.ok() ? accepted : error_answer(status));
      });
  if (!taken) answer(error_answer(absl::ResourceExhaustedError("too many actions wait; ask again later")));
}

}  // namespace paceline::dashboard

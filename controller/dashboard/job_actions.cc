#include "controller/dashboard/job_actions.h"

#include <memory>
#include <string>
#include <utility>

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

absl::Status JobActions::perform(Action action, const Json& object, const Json& patch) {
  const std::string& ns = kube::text_at(object, {"metadata", "namespace"});
  const std::string& name = kube::text_at(object, {"metadata", "name"});
  const auto source = place_.source();
  if (action == Action::kDelete) return source->remove(ns, name, "Background").status();
  return source->patch(ns, name, patch, std::string(dashboard::name(action))).status();
}

void JobActions::act(Call call, Action action) {
  if (const std::string why = board_.why_not(action, *call.object); !why.empty())
    return call.answer(error_answer(absl::FailedPreconditionError(str_cat(call.key, ": ", why))));
  Json body = Json::object();
  if (!call.request.body.empty()) {
    auto parsed = kube::parse_json(call.request.body);
    if (!parsed.ok()) return call.answer(error_answer(absl::InvalidArgumentError("the body is no JSON")));
    body = *std::move(parsed);
  }
  const auto answer = call.answer;
  const bool taken =
      workers_.post([this, action, call = std::move(call), body = std::move(body)](const std::stop_token&) {
        const auto patch = action == Action::kDelete ? absl::StatusOr<Json>(Json::object())
                                                     : patch_of(action, *call.object, body);
        if (!patch.ok()) return call.answer(error_answer(patch.status()));
        const std::string done =
            str_cat(place_.user(), " asked by the dashboard to ", dashboard::name(action), " it");
        place_.record(*call.object, false, "UserAction", done);
        // A run that goes on takes a while to end.
        const HttpAnswer accepted = json_answer(kube::dump({{"message", verb_text(action, call.key)}}), 202);
        if (action == Action::kDelete) call.answer(accepted);
        const absl::Status status = perform(action, *call.object, *patch);
        if (!status.ok())
          place_.record(*call.object, true, "UserActionFailed", str_cat(done, ": ", status.message()));
        if (action != Action::kDelete) call.answer(status.ok() ? accepted : error_answer(status));
      });
  if (!taken) answer(error_answer(absl::ResourceExhaustedError("too many actions wait; ask again later")));
}

}  // namespace paceline::dashboard

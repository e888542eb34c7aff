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

}  // namespace

absl::StatusOr<Deed> JobActions::prepare(const Call& call, jobs::JobSource& source, Action action,
                                         const Json& body) const {
  // The board may be a moment behind, and have been asked the same in that moment.
  const auto now = source.job(kube::text_at(*call.object, {"metadata", "namespace"}),
                              kube::text_at(*call.object, {"metadata", "name"}));
  const Json& object = now.ok() ? *now : *call.object;
  PL_RETURN_IF_ERROR(jobs::check_uid(object, kube::text_at(*call.object, {"metadata", "uid"})));
  if (const std::string why = board_.why_not(action, object); !why.empty())
    return absl::FailedPreconditionError(str_cat(call.key, ": ", why));
  return deed_of(action, object, body, clock_.wall_now());
}

absl::Status JobActions::perform(const Call& call, jobs::JobSource& source, Action action,
                                 const Json& patch) {
  const std::string& ns = kube::text_at(*call.object, {"metadata", "namespace"});
  const std::string& name = kube::text_at(*call.object, {"metadata", "name"});
  const std::string& uid = kube::text_at(*call.object, {"metadata", "uid"});
  if (action == Action::kDelete) return source.remove(ns, name, uid, "Background").status();
  Json same = patch;
  same["metadata"]["uid"] = uid;
  return source.patch(ns, name, same, std::string(dashboard::name(action))).status();
}

void JobActions::work(const Call& call, Action action, const Json& body, const Note& note) {
  const auto refuse = [&](const absl::Status& status) {
    note(str_cat("refused: ", status.message()));
    call.answer(error_answer(status));
  };
  const auto source = place_.source(call.viewer);
  if (!source.ok()) return refuse(source.status());
  const auto deed = prepare(call, **source, action, body);
  if (!deed.ok()) return refuse(deed.status());
  const std::string asked = str_cat(call.viewer.user, " asked by the dashboard to ", deed->asked);
  if (const absl::Status recorded = place_.record(*call.object, false, "UserAction", asked); !recorded.ok())
    return refuse(recorded);
  const bool at_once = action == Action::kDelete && place_.removes_slowly();
  const HttpAnswer accepted = json_answer(kube::dump({{"message", deed->done}}), 202);
  if (at_once) call.answer(accepted);
  const absl::Status status = perform(call, **source, action, deed->patch);
  note(status.ok() ? "done" : str_cat("failed: ", status.message()));
  if (!status.ok())
    place_.record(*call.object, true, "UserActionFailed", str_cat(asked, ": ", status.message()))
        .IgnoreError();
  if (!at_once) call.answer(status.ok() ? accepted : error_answer(status));
}

void JobActions::act(Call call, Action action) {
  const Note note = [audit = audit_, viewer = call.viewer, action,
                     key = call.key](const std::string& result) {
    if (audit) audit(viewer, action, key, result);
  };
  const auto refuse = [note, answer = call.answer](const absl::Status& status) {
    note(str_cat("refused: ", status.message()));
    answer(error_answer(status));
  };
  if (const std::string why = board_.why_not(action, *call.object); !why.empty())
    return refuse(absl::FailedPreconditionError(str_cat(call.key, ": ", why)));
  Json body = Json::object();
  if (!call.request.body.empty()) {
    auto parsed = kube::parse_json(call.request.body);
    if (!parsed.ok()) return refuse(absl::InvalidArgumentError("the body is no JSON"));
    body = *std::move(parsed);
  }
  const std::string lane = lane_of(call);
  const bool taken = workers_.post([this, action, note, call = std::move(call), body = std::move(body)](
                                       const std::stop_token&) { work(call, action, body, note); },
                                   lane);
  if (!taken) refuse(absl::ResourceExhaustedError("too many actions wait; ask again later"));
}

}  // namespace paceline::dashboard

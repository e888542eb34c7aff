#include "controller/dashboard/api.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "base/hex.h"
#include "base/random.h"
#include "base/text.h"
#include "controller/dashboard/answers.h"
#include "controller/dashboard/event_stream.h"
#include "controller/dashboard/guard.h"
#include "controller/dashboard/past_job.h"

namespace paceline::dashboard {

namespace {

using kube::Json;
using web::HttpAnswer;

const std::string kBase = "/api/v1";
constexpr char kJob[] = "/jobs/{ns}/{name}";

// The namespaces that the viewer sees, and his rights.
Sight::Seen seen_by(const Call& call) {
  return call.sight == nullptr ? Sight::Seen{} : call.sight->look({});
}

absl::Status no_job(const std::string& key) {
  return absl::NotFoundError(str_cat("there is no job ", key));
}

// A deleted job is NAME@UID, because others may have had its name.
void split_name(web::HttpRequest::Fields& path) {
  const auto name = path.find("name");
  const std::size_t at = name == path.end() ? std::string::npos : name->second.find('@');
  if (at == std::string::npos) return;
  path["uid"] = name->second.substr(at + 1);
  name->second.resize(at);
}

}  // namespace

Api::Api(Board& board, Place& place, Gate& gate, ApiOptions options, const Clock& clock,
         std::function<void()> wake)
    : board_(board),
      place_(place),
      gate_(gate),
      options_(std::move(options)),
      epoch_(hex(random_bytes(4))),
      questions_(board, place, clock, std::move(wake)),
      actions_(board, place, clock, options_.audit) {
  open_session_ = add("POST", "/session", &Api::open_session);
  add("GET", "/session", &Api::get_session);
  add("GET", "/jobs", &Api::get_jobs);
  add_route("GET", "/past", [this](Call call) { questions_.past(std::move(call)); });
  add("GET", "/stream", &Api::stream);
  add("GET", kJob, &Api::get_job);
  for (const auto& [end, question] : {std::pair{"/series", &JobQuestions::series},
                                      {"/heatmap", &JobQuestions::heat_map},
                                      {"/timeline", &JobQuestions::timeline},
                                      {"/events", &JobQuestions::events},
                                      {"/logs", &JobQuestions::logs},
                                      {"/logs/{pod}", &JobQuestions::log},
                                      {"/logs/{pod}/stream", &JobQuestions::follow_log},
                                      {"/yaml", &JobQuestions::yaml},
                                      {"/next", &JobQuestions::next}}) {
    add_route("GET", str_cat(kJob, end),
              [this, question = question](Call call) { (questions_.*question)(std::move(call)); });
  }
  for (const Action action :
       {Action::kSuspend, Action::kResume, Action::kScale, Action::kCheckpoint, Action::kReplace}) {
    add_route(
        "POST", str_cat(kJob, "/", name(action)),
        [this, action](Call call) { actions_.act(std::move(call), action); }, action);
  }
  add_route(
      "DELETE", kJob, [this](Call call) { actions_.act(std::move(call), Action::kDelete); }, Action::kDelete);
}

std::size_t Api::add(const char* method, const char* path, void (Api::*handler)(Call)) {
  return add_route(method, path, [this, handler](Call call) { (this->*handler)(std::move(call)); });
}

std::size_t Api::add_route(const char* method, const std::string& path, Handler handler,
                           std::optional<Action> action) {
  Route route{.handler = std::move(handler), .action = action};
  if (path.starts_with(kJob))
    route.need.verb = !action ? "get" : action == Action::kDelete ? "delete" : "update";
  route.need.lists = path == "/jobs" || path == "/past" || path == "/session";
  route.need.of_stream = path.ends_with("/stream");
  route.need.rights = path == kJob && !action;
  routes_.push_back(std::move(route));
  return router_.add(method, kBase + path);
}

void Api::handle(web::HttpRequest request, web::Reply reply) {
  Call call{.request = std::move(request),
            .answer = [reply = std::move(reply)](HttpAnswer answer) { reply(std::move(answer)); }};
  if (const auto refusal = check_origin(call.request, options_.hosts))
    return call.answer(error_answer(*refusal));
  if (call.request.path != "/api" && !call.request.path.starts_with("/api/"))
    return call.answer(asset_answer(options_.assets, call.request));
  dispatch(std::move(call));
}

Need Api::need_of(const Route& route, const Call& call) {
  Need need = route.need;
  std::string ns, name;
  if (!need.verb.empty()) {
    need.ns = call.path.at("ns");
    need.name = call.path.at("name");
  } else if (const std::string& job = call.request.parameter("job"); need.of_stream && !job.empty()) {
    need.verb = "get";
    need.rights = true;
    need.ns = job.substr(0, job.find('/'));
    need.name = job.substr(std::min(job.size(), need.ns.size() + 1));
  }
  need.lists |= need.of_stream && call.request.parameter("jobs") == "1";
  return need;
}

void Api::dispatch(Call call) {
  web::Router::Match match = router_.match(call.request.method, call.request.path);
  call.path = match.parameters;
  split_name(call.path);
  if (match.route == open_session_) return open_session(std::move(call));
  const Need need = match.route ? need_of(routes_[*match.route], call) : Need{};
  const auto held = std::make_shared<Call>(std::move(call));
  gate_.admit(held->request, need, [this, held, match = std::move(match)](Admission admission) {
    held->viewer = std::move(admission.viewer);
    held->sight = std::move(admission.sight);
    if (!admission.refusal) return serve(match, std::move(*held));
    const Refusal& refusal = *admission.refusal;
    const auto action = match.route ? routes_[*match.route].action : std::nullopt;
    if (action && options_.audit && !held->viewer.user.empty())
      options_.audit(held->viewer, *action, key_of(held->path["ns"], held->path["name"]),
                     refusal.status == 403 ? "forbidden" : str_cat("refused: ", refusal.message));
    held->answer(error_answer(refusal));
  });
}

void Api::serve(const web::Router::Match& match, Call call) {
  if (!match.route && !match.allowed.empty()) {
    HttpAnswer answer = error_answer(Refusal{405, "MethodNotAllowed", "this path has other methods", ""});
    for (const std::string& method : match.allowed) answer.headers.emplace_back("Allow", method);
    return call.answer(std::move(answer));
  }
  if (!match.route)
    return call.answer(
        error_answer(Refusal{404, "NotFound", "there is no such path", "see docs/dashboard-api.md"}));
  const Route& route = routes_[*match.route];
  if (!route.need.verb.empty()) {
    call.key = key_of(call.path["ns"], call.path["name"]);
    call.object = board_.object(call.key);
    if (call.object == nullptr) return serve_past(route, std::move(call));
    if (const absl::Status same = jobs::check_uid(*call.object, call.path["uid"]); !same.ok())
      return route.action ? refuse(call, route.action, same) : serve_past(route, std::move(call));
    board_.look(call.key);
  }
  route.handler(std::move(call));
}

void Api::serve_past(const Route& route, Call call) {
  if (place_.history() == nullptr) return refuse(call, route.action, no_job(call.key));
  questions_.find_past(std::move(call), [this, &route](Call of) {
    if (of.past == nullptr) return refuse(of, route.action, no_job(of.key));
    if (!route.action) return route.handler(std::move(of));
    refuse(of, route.action, absl::FailedPreconditionError(str_cat(of.key, ": ", past_job_text())));
  });
}

void Api::refuse(const Call& call, std::optional<Action> action, const absl::Status& why) const {
  if (action && options_.audit)
    options_.audit(call.viewer, *action, call.key, str_cat("refused: ", why.message()));
  call.answer(error_answer(why));
}

Json Api::session(const Call& call) const {
  Json session = {{"version", options_.version}, {"user", call.viewer.user}, {"namespaces", nullptr}};
  session.update(place_.about());
  if (const Namespaces seen = seen_by(call).namespaces) session["namespaces"] = *seen;
  return session;
}

void Api::open_session(Call call) {
  const auto body = kube::parse_json(call.request.body);
  if (!body.ok() || !kube::at(*body, {"token"}).is_string()) {
    return call.answer(error_answer(absl::InvalidArgumentError("the body must be {\"token\": \"...\"}")));
  }
  const auto held = std::make_shared<Call>(std::move(call));
  gate_.open(held->request, kube::text_at(*body, {"token"}), [this, held](Gate::Opened opened) {
    if (opened.admission.refusal) return held->answer(error_answer(*opened.admission.refusal));
    held->viewer = std::move(opened.admission.viewer);
    held->sight = std::move(opened.admission.sight);
    Json told = session(*held);
    told.update(opened.told);
    HttpAnswer answer = json_answer(kube::dump(told));
    if (!opened.cookie.empty()) answer.headers.emplace_back("Set-Cookie", opened.cookie);
    held->answer(std::move(answer));
  });
}

void Api::get_session(Call call) {
  call.answer(json_answer(kube::dump(session(call))));
}

void Api::get_jobs(Call call) {
  call.answer(json_answer(board_.list_json(seen_by(call).namespaces)));
}

void Api::get_job(Call call) {
  if (call.past) return call.answer(json_answer(past_job_json(*call.past)));
  const auto json = board_.job_json(call.key, seen_by(call).rights);
  call.answer(json == nullptr ? error_answer(no_job(call.key)) : json_answer(*json));
}

void Api::stream(Call call) {
  EventStream::Wish wish{call.request.parameter("jobs") == "1", call.request.parameter("job")};
  if (!wish.jobs && wish.job.empty()) {
    return call.answer(
        error_answer(absl::InvalidArgumentError("ask for jobs=1, for job=NAMESPACE/NAME, or for both")));
  }
  if (!wish.job.empty() && board_.object(wish.job) == nullptr) {
    return call.answer(error_answer(no_job(wish.job)));
  }
  call.answer({.content_type = "text/event-stream",
               .stream = std::make_shared<EventStream>(board_, std::move(wish), epoch_,
                                                       call.request.header("last-event-id"), call.sight)});
}

}  // namespace paceline::dashboard

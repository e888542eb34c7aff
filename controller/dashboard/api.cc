#include "controller/dashboard/api.h"

#include <optional>
#include <utility>

#include "base/hex.h"
#include "base/random.h"
#include "base/text.h"
#include "controller/dashboard/answers.h"
#include "controller/dashboard/event_stream.h"
#include "controller/dashboard/guard.h"

namespace paceline::dashboard {

namespace {

using kube::Json;
using web::HttpAnswer;

constexpr std::size_t kSecretBytes = 32;
const std::string kBase = "/api/v1";
constexpr char kJob[] = "/jobs/{ns}/{name}";

std::string secret() {
  return hex(random_bytes(kSecretBytes));
}

HttpAnswer no_job(const std::string& key) {
  return error_answer(Refusal{404, "NotFound", str_cat("there is no job ", key), "see /api/v1/jobs"});
}

}  // namespace

Api::Api(Board& board, Place& place, ApiOptions options, const Clock& clock, std::function<void()> wake)
    : board_(board),
      place_(place),
      options_(std::move(options)),
      epoch_(hex(random_bytes(4))),
      questions_(board, place, clock, std::move(wake)),
      actions_(board, place) {
  open_session_ = add("POST", "/session", &Api::open_session);
  add("GET", "/session", &Api::get_session);
  add("GET", "/jobs", &Api::get_jobs);
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
    add_route("POST", str_cat(kJob, "/", name(action)),
              [this, action](Call call) { actions_.act(std::move(call), action); });
  }
  add_route("DELETE", kJob, [this](Call call) { actions_.act(std::move(call), Action::kDelete); });
}

std::size_t Api::add(const char* method, const char* path, void (Api::*handler)(Call)) {
  return add_route(method, path, [this, handler](Call call) { (this->*handler)(std::move(call)); });
}

std::size_t Api::add_route(const char* method, const std::string& path, Handler handler) {
  routes_.push_back({std::move(handler), path.starts_with(kJob), path.ends_with("/stream")});
  return router_.add(method, kBase + path);
}

std::string Api::new_token() {
  std::string token = secret();
  sessions_.lock()->add_token(token);
  return token;
}

void Api::handle(web::HttpRequest request, web::Reply reply) {
  Call call{.request = std::move(request), .answer = [reply = std::move(reply)](HttpAnswer answer) {
              add_security_headers(answer);
              reply(std::move(answer));
            }};
  if (const auto refusal = check_origin(call.request, options_.hosts))
    return call.answer(error_answer(*refusal));
  if (call.request.path != "/api" && !call.request.path.starts_with("/api/"))
    return call.answer(asset_answer(options_.assets, call.request));
  dispatch(std::move(call));
}

void Api::dispatch(Call call) {
  web::Router::Match match = router_.match(call.request.method, call.request.path);
  const bool of_stream = match.route && routes_[*match.route].of_stream;
  if (match.route != open_session_ &&
      !sessions_.lock()->use(cookie_named(call.request.header("cookie"), options_.cookie),
                             csrf_word(call.request, of_stream))) {
    return call.answer(error_answer(Refusal{401, "Unauthenticated",
                                            "there is no session with this cookie and this X-Paceline-CSRF",
                                            "open the address that `paceline dashboard` prints"}));
  }
  if (!match.route && !match.allowed.empty()) {
    HttpAnswer answer = error_answer(Refusal{405, "MethodNotAllowed", "this path has other methods", ""});
    for (const std::string& method : match.allowed) answer.headers.emplace_back("Allow", method);
    return call.answer(std::move(answer));
  }
  if (!match.route)
    return call.answer(
        error_answer(Refusal{404, "NotFound", "there is no such path", "see docs/dashboard-api.md"}));
  call.path = std::move(match.parameters);
  const Route& route = routes_[*match.route];
  if (route.of_job) {
    call.key = key_of(call.path["ns"], call.path["name"]);
    call.object = board_.object(call.key);
    if (call.object == nullptr) {
      return call.answer(no_job(call.key));
    }
    board_.look(call.key);
  }
  route.handler(std::move(call));
}

Json Api::session() const {
  return {{"version", options_.version},
          {"place", place_.kind()},
          {"user", place_.user()},
          {"namespaces", nullptr}};
}

void Api::open_session(Call call) {
  const auto body = kube::parse_json(call.request.body);
  if (!body.ok() || !kube::at(*body, {"token"}).is_string()) {
    return call.answer(error_answer(absl::InvalidArgumentError("the body must be {\"token\": \"...\"}")));
  }
  std::optional<Sessions::Session> opened;
  {
    auto sessions = sessions_.lock();
    const auto* session = sessions->open(kube::text_at(*body, {"token"}), {secret(), secret()});
    if (session != nullptr) opened = *session;
  }
  if (!opened) {
    return call.answer(error_answer(Refusal{401, "Unauthenticated", "the token is wrong, or was used before",
                                            "start `paceline dashboard` again, which prints a new address"}));
  }
  Json told = session();
  told["csrf"] = opened->csrf;
  HttpAnswer answer = json_answer(kube::dump(told));
  answer.headers.emplace_back(
      "Set-Cookie", str_cat(options_.cookie, "=", opened->cookie, "; HttpOnly; SameSite=Strict; Path=/"));
  call.answer(std::move(answer));
}

void Api::get_session(Call call) {
  call.answer(json_answer(kube::dump(session())));
}

void Api::get_jobs(Call call) {
  call.answer(json_answer(board_.list_json()));
}

void Api::get_job(Call call) {
  call.answer(json_answer(board_.job_json(call.key).value_or("{}")));
}

void Api::stream(Call call) {
  EventStream::Wish wish{call.request.parameter("jobs") == "1", call.request.parameter("job")};
  if (!wish.jobs && wish.job.empty()) {
    return call.answer(
        error_answer(absl::InvalidArgumentError("ask for jobs=1, for job=NAMESPACE/NAME, or for both")));
  }
  if (!wish.job.empty() && board_.object(wish.job) == nullptr) {
    return call.answer(no_job(wish.job));
  }
  call.answer({.content_type = "text/event-stream",
               .stream = std::make_shared<EventStream>(board_, std::move(wish), epoch_,
                                                       call.request.header("last-event-id"))});
}

}  // namespace paceline::dashboard

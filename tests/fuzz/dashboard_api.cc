#include "controller/dashboard/api.h"

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include "base/check.h"
#include "base/guarded.h"
#include "base/text.h"
#include "controller/cluster/kube/json.h"
#include "controller/dashboard/session_gate.h"
#include "tests/fuzz/target.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_place.h"

namespace paceline::fuzz {

namespace {

using web::HttpAnswer;
using web::HttpRequest;

class Caller final : public web::Reply::Target {
 public:
  void answer(HttpAnswer answer) override {
    auto first = answer_.lock();
    if (!*first) *first = std::move(answer);
  }
  HttpAnswer wait() {
    auto answer =
        answer_.lock_when([](const auto& come) { return come.has_value(); }, std::chrono::seconds(60));
    PL_CHECK(answer->has_value(), "every request is answered");
    return *std::move(*answer);
  }

 private:
  Guarded<std::optional<HttpAnswer>> answer_;
};

// A dashboard with one job, and one session of it.
class Dashboard {
 public:
  Dashboard() {
    board_.apply({.objects = {dashboard::running_job()}, .removed = {}, .left_out = {}});
    HttpRequest open{.method = "POST",
                     .path = "/api/v1/session",
                     .body = str_cat("{\"token\":\"", gate_.new_token(), "\"}")};
    open.headers["host"] = kHost;
    const HttpAnswer opened = ask(open);
    PL_CHECK(opened.status == 200, "a token opens a session");
    csrf_ = kube::text_at(kube::parse_json(opened.body).value(), {"csrf"});
    for (const auto& [name, value] : opened.headers) {
      if (name == "Set-Cookie") cookie_ = value.substr(0, value.find(';'));
    }
  }

  // Adds all that a request of the page has and this one lacks.
  void sign(HttpRequest& request) const {
    request.headers.emplace("host", kHost);
    request.headers.emplace("cookie", cookie_);
    request.headers.emplace("x-paceline-csrf", csrf_);
  }
  HttpAnswer ask(const HttpRequest& request) {
    const auto caller = std::make_shared<Caller>();
    api_.handle(request, web::Reply(caller));
    return caller->wait();
  }
  void forget_calls() { *place_.done.lock() = {}; }

 private:
  static constexpr char kHost[] = "127.0.0.1:8080";
  FakeClock clock_;
  dashboard::FakePlace place_;
  dashboard::Board board_{clock_};
  dashboard::SessionGate gate_{"ada", "session", nullptr, clock_};
  dashboard::Api api_{board_, place_,
                      gate_,  {.version = "1", .hosts = {kHost}, .audit = nullptr, .assets = {}},
                      clock_, [] {}};
  std::string cookie_, csrf_;
};

std::string_view cut(std::string_view& text, char end) {
  const std::size_t at = text.find(end);
  const std::string_view part = text.substr(0, at);
  text.remove_prefix(at == std::string_view::npos ? text.size() : at + 1);
  return part;
}

// "GET /path?name=value&name=value", lines of headers, an empty line, the body.
HttpRequest request_of(std::string_view text) {
  HttpRequest request;
  std::string_view line = cut(text, '\n');
  request.method = cut(line, ' ');
  request.path = cut(line, '?');
  while (!line.empty()) {
    std::string_view parameter = cut(line, '&');
    const std::string_view name = cut(parameter, '=');
    request.query.emplace(name, parameter);
  }
  for (line = cut(text, '\n'); !line.empty(); line = cut(text, '\n')) {
    const std::string_view name = cut(line, ':');
    request.headers.emplace(name, line);
  }
  request.body = text;
  return request;
}

}  // namespace

// A request, as the HTTP server hands it over. Asked twice: as it is, and as one of the page's own.
int fuzz_dashboard_api(Input input) {
  static Dashboard dashboard;
  HttpRequest request = request_of(text_of(input));
  for (const bool own : {false, true}) {
    if (own) dashboard.sign(request);
    const HttpAnswer answer = dashboard.ask(request);
    PL_CHECK(answer.status >= 200 && answer.status < 500, "an answer, or the caller's mistake");
    PL_CHECK(own || answer.status >= 400 || !request.path.starts_with("/api"),
             "nothing is told without a session");
    for (const auto& [name, value] : answer.headers)
      PL_CHECK(value.find_first_of("\r\n") == std::string::npos, "a header is one line");
    if (answer.content_type.starts_with("application/json"))
      PL_CHECK(kube::parse_json(answer.body).ok(), "JSON is JSON");
    if (answer.stream != nullptr)
      for (int i = 0; i < 3; ++i) (void)answer.stream->next(TimePoint(std::chrono::seconds(i)));
  }
  dashboard.forget_calls();
  return 0;
}

}  // namespace paceline::fuzz

#include "controller/dashboard/server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "base/guarded.h"
#include "base/rng.h"
#include "base/text.h"
#include "controller/dashboard/job_history.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_place.h"
#include "tests/support/http_reader.h"
#include "tests/support/temporary_folder.h"

namespace paceline::dashboard {
namespace {

using kube::Json;
using ::testing::HasSubstr;
using ::testing::StartsWith;

struct Answer {
  int status = 0;
  std::string head, body;
  Json json() const { return Json::parse(body, nullptr, false); }
};

class ServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    board_.apply({.objects = {running_job()}});
    auto server = Server::start(board_, place_, {.version = "1.2.3", .user = "ada"}, clock_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  std::string token() {
    const std::string address = server_->new_address();
    return address.substr(address.find("#token=") + 7);
  }
  std::string host() const { return str_cat("127.0.0.1:", server_->port()); }
  // `headers`: whole lines.
  std::string text_of(const std::string& method, const std::string& path, const std::string& headers,
                      const std::string& body = "") const {
    return str_cat(method, " ", path, " HTTP/1.1\r\nConnection: close\r\n", headers,
                   body.empty() ? "" : str_cat("Content-Length: ", body.size(), "\r\n"), "\r\n", body);
  }
  Answer ask(const std::string& text) const {
    HttpReader reader(server_->port());
    reader.send(text);
    const std::string& all = reader.rest();
    const std::size_t end = all.find("\r\n\r\n");
    if (all.size() < 12 || end == std::string::npos) return {};
    return {std::stoi(all.substr(9, 3)), all.substr(0, end + 2), all.substr(end + 4)};
  }
  std::string host_line() const { return str_cat("Host: ", host(), "\r\n"); }
  void open_session() {
    const Answer answer =
        ask(text_of("POST", "/api/v1/session", host_line(), str_cat("{\"token\":\"", token(), "\"}")));
    ASSERT_EQ(answer.status, 200);
    const std::size_t begin = answer.head.find("Set-Cookie: ") + 12;
    cookie_ = answer.head.substr(begin, answer.head.find(';', begin) - begin);
    csrf_ = answer.json()["csrf"];
  }
  std::string cookie_line() const { return str_cat(host_line(), "Cookie: ", cookie_, "\r\n"); }
  std::string session() const { return str_cat(cookie_line(), "X-Paceline-CSRF: ", csrf_, "\r\n"); }
  Answer get(const std::string& path) const { return ask(text_of("GET", path, session())); }
  Answer post(const std::string& path, const std::string& body = "") const {
    return ask(text_of("POST", path, session(), body));
  }

  FakeClock clock_;
  FakePlace place_;
  Board board_{clock_};
  std::unique_ptr<Server> server_;
  std::string cookie_, csrf_;
};

constexpr char kJob[] = "/api/v1/jobs/default/digits";

TEST_F(ServerTest, TokensOpenASessionOnce) {
  const std::string body = str_cat("{\"token\":\"", token(), "\"}");
  const Answer first = ask(text_of("POST", "/api/v1/session", host_line(), body));
  EXPECT_EQ(first.status, 200);
  EXPECT_THAT(first.head, HasSubstr("HttpOnly; SameSite=Strict; Path=/\r\n"));
  EXPECT_EQ(first.json()["user"], "ada");
  EXPECT_EQ(first.json()["place"], "Local");
  EXPECT_EQ(first.json()["version"], "1.2.3");
  const Answer second = ask(text_of("POST", "/api/v1/session", host_line(), body));
  EXPECT_EQ(second.status, 401);
  EXPECT_EQ(second.json()["error"]["code"], "Unauthenticated");
  for (const char* other : {"{}", "[]", "null", "{\"token\":1}", "x", "", "{\"token\":\"\xff\"}"})
    EXPECT_NE(ask(text_of("POST", "/api/v1/session", host_line(), other)).status, 200) << other;
}

TEST_F(ServerTest, NothingIsToldWithoutASession) {
  for (const char* path :
       {"/api/v1/jobs", "/api/v1/session", "/api/v1/stream?jobs=1", kJob, "/api/v1/nothing"}) {
    EXPECT_EQ(ask(text_of("GET", path, host_line())).status, 401) << path;
    EXPECT_EQ(ask(text_of("GET", path,
                          str_cat(host_line(), "Cookie: paceline_session_", server_->port(), "=x\r\n")))
                  .status,
              401)
        << path;
  }
  EXPECT_EQ(ask(text_of("DELETE", kJob, host_line())).status, 401);
}

TEST_F(ServerTest, OtherHostsAndOriginsAreRefused) {
  open_session();
  EXPECT_EQ(ask(text_of("GET", "/", "Host: evil.example\r\n")).status, 421);
  EXPECT_EQ(
      ask(text_of("GET", "/api/v1/jobs", str_cat("Host: evil.example\r\nCookie: ", cookie_, "\r\n"))).status,
      421);
  EXPECT_EQ(ask(text_of("GET", "/api/v1/jobs", str_cat(session(), "Origin: http://evil.example\r\n"))).status,
            403);
  EXPECT_EQ(
      ask(text_of("POST", str_cat(kJob, "/suspend"), str_cat(session(), "Origin: http://127.0.0.1:1\r\n")))
          .status,
      403);
  EXPECT_EQ(ask(text_of("GET", "/api/v1/jobs", str_cat(session(), "Origin: http://", host(), "\r\n"))).status,
            200);
}

TEST_F(ServerTest, CookieAloneOpensNothing) {
  open_session();
  const std::string stream = "/api/v1/stream?jobs=1";
  const std::string log_stream = str_cat(kJob, "/logs/digits-worker-0-0/stream?tail=3");
  for (const std::string& path : {std::string("/api/v1/jobs"), std::string("/api/v1/session"), stream,
                                  log_stream, std::string(kJob), std::string("/api/v1/nothing")}) {
    EXPECT_EQ(ask(text_of("GET", path, cookie_line())).status, 401) << path;
    EXPECT_EQ(ask(text_of("HEAD", path, cookie_line())).status, 401) << path;
    EXPECT_EQ(ask(text_of("GET", path, str_cat(cookie_line(), "X-Paceline-CSRF: x\r\n"))).status, 401)
        << path;
  }
  for (const std::string& path : {stream, log_stream})
    EXPECT_EQ(ask(text_of("GET", str_cat(path, "&csrf=x"), cookie_line())).status, 401) << path;
  EXPECT_EQ(ask(text_of("POST", str_cat(kJob, "/suspend"), cookie_line())).status, 401);
  EXPECT_EQ(ask(text_of("DELETE", kJob, str_cat(cookie_line(), "X-Paceline-CSRF: x\r\n"))).status, 401);
  EXPECT_TRUE(place_.done.lock()->patches.empty());
  EXPECT_TRUE(place_.done.lock()->removed.empty());
}

TEST_F(ServerTest, WordAloneOpensNothing) {
  open_session();
  const std::string word = str_cat(host_line(), "X-Paceline-CSRF: ", csrf_, "\r\n");
  EXPECT_EQ(ask(text_of("GET", "/api/v1/jobs", word)).status, 401);
  EXPECT_EQ(ask(text_of("GET", str_cat("/api/v1/stream?jobs=1&csrf=", csrf_), host_line())).status, 401);
}

TEST_F(ServerTest, WordInTheAddressOpensStreamsOnly) {
  open_session();
  const std::string word = str_cat("csrf=", csrf_);
  EXPECT_EQ(ask(text_of("GET", str_cat(kJob, "/logs/digits-worker-0-0/stream?tail=3&", word), cookie_line()))
                .status,
            200);
  HttpReader reader(server_->port());
  reader.send(str_cat("GET /api/v1/stream?jobs=1&", word, " HTTP/1.1\r\n", cookie_line(), "\r\n"));
  EXPECT_THAT(reader.until("event: jobs\n"), StartsWith("HTTP/1.1 200"));
  for (const std::string& path :
       {std::string("/api/v1/jobs"), std::string("/api/v1/session"), std::string(kJob),
        str_cat(kJob, "/logs/digits-worker-0-0"), str_cat(kJob, "/logs/stream")})
    EXPECT_EQ(ask(text_of("GET", str_cat(path, "?", word), cookie_line())).status, 401) << path;
  EXPECT_EQ(ask(text_of("POST", str_cat(kJob, "/suspend?", word), cookie_line())).status, 401);
  EXPECT_EQ(ask(text_of("DELETE", str_cat(kJob, "?", word), cookie_line())).status, 401);
}

TEST_F(ServerTest, WordIsToldOnce) {
  open_session();
  const Json session = get("/api/v1/session").json();
  EXPECT_EQ(session["user"], "ada");
  EXPECT_FALSE(session.contains("csrf"));
}

TEST_F(ServerTest, EveryAnswerTellsBrowsersWhatTheyMayDo) {
  open_session();
  for (const std::string& text :
       {text_of("GET", "/", host_line()), text_of("GET", "/", "Host: x\r\n"),
        text_of("GET", "/api/v1/jobs", session()), text_of("GET", "/api/v1/jobs", host_line()),
        text_of("GET", "/api/v1/x", session()), text_of("GET", "/%00", host_line()),
        text_of("POST", "/api/v1/session", host_line(), std::string(100'000, 'x'))}) {
    const Answer answer = ask(text);
    EXPECT_THAT(answer.head, HasSubstr("Content-Security-Policy: default-src 'none'")) << answer.status;
    EXPECT_THAT(answer.head, HasSubstr("X-Content-Type-Options: nosniff")) << answer.status;
  }
  EXPECT_THAT(get("/api/v1/jobs").head, HasSubstr("Cache-Control: no-store"));
}

TEST_F(ServerTest, DeletedJobsAreToldAndLeftAsTheyAre) {
  open_session();
  EXPECT_EQ(get("/api/v1/past").status, 503);
  const TemporaryFolder folder;
  const JobSamples samples(clock_);
  JobHistory history({.path = folder.path() + "/history.db", .limits = {}, .ns = ""}, samples, clock_,
                     Logger::none());
  for (const auto& [name, uid] : {std::pair{"digits", "earlier"}, std::pair{"old", "1"}}) {
    Json job = running_job();
    job["metadata"]["name"] = name;
    job["metadata"]["uid"] = uid;
    history.note(uid, std::make_shared<const Json>(job));
    history.note_deleted(uid);
  }
  ASSERT_TRUE(history.pass());
  place_.past = &history;

  const Json past = get("/api/v1/past").json();
  EXPECT_EQ(past["jobs"].size(), 2U);
  EXPECT_EQ(past["more"], false);
  EXPECT_EQ(get("/api/v1/past?limit=1").json()["more"], true);
  EXPECT_EQ(get("/api/v1/past?namespace=other").json()["jobs"].size(), 0U);
  EXPECT_EQ(get("/api/v1/past?objects=1").json()["jobs"][0]["spec"], running_job()["spec"]);
  EXPECT_EQ(get("/api/v1/past?limit=x").status, 400);

  EXPECT_FALSE(get(kJob).json()["row"].contains("deleted"));
  for (const char* path :
       {"/api/v1/jobs/default/old", "/api/v1/jobs/default/old@1", "/api/v1/jobs/default/digits@earlier"}) {
    const Json job = get(path).json();
    EXPECT_TRUE(job["row"].contains("deleted")) << path;
    EXPECT_EQ(job["actions"]["delete"]["allowed"], false) << path;
    EXPECT_EQ(get(str_cat(path, "/series")).status, 200) << path;
    EXPECT_EQ(get(str_cat(path, "/events")).json()["events"].size(), 0U) << path;
    EXPECT_EQ(get(str_cat(path, "/logs")).json()["logs"].size(), 0U) << path;
    EXPECT_EQ(get(str_cat(path, "/logs/digits-worker-0-0")).status, 404) << path;
    EXPECT_EQ(get(str_cat(path, "/next")).json()["decisions"].size(), 0U) << path;
    EXPECT_EQ(post(str_cat(path, "/suspend")).status, 409) << path;
    EXPECT_EQ(ask(text_of("DELETE", path, session())).status, 409) << path;
  }
  for (const char* path :
       {"/api/v1/jobs/default/old@2", "/api/v1/jobs/default/none", "/api/v1/jobs/other/old@1"})
    EXPECT_EQ(get(path).status, 404) << path;
  EXPECT_TRUE(place_.done.lock()->patches.empty());
  EXPECT_TRUE(place_.done.lock()->removed.empty());
  server_.reset();  // before the history that it reads
}

TEST_F(ServerTest, JobsAreTold) {
  open_session();
  EXPECT_EQ(get("/api/v1/jobs").json()["jobs"][0]["name"], "digits");
  const Json job = get(kJob).json();
  EXPECT_EQ(job["row"]["phase"], "Running");
  EXPECT_EQ(job["object"], running_job());
  EXPECT_EQ(job["actions"]["resume"]["allowed"], false);
  EXPECT_EQ(get("/api/v1/jobs/default/other").status, 404);
  EXPECT_EQ(get("/api/v1/other").status, 404);
  const Answer method = ask(text_of("PUT", kJob, session()));
  EXPECT_EQ(method.status, 405);
  EXPECT_THAT(method.head, HasSubstr("Allow: GET\r\nAllow: DELETE\r\n"));
}

TEST_F(ServerTest, SeriesOfAFollowedJobAreReadOnceBetweenTwoChanges) {
  open_session();
  const auto reads_of = [&](std::string_view question) {
    const int before = place_.done.lock()->reads;
    for (int i = 0; i < 3; ++i) EXPECT_EQ(get(str_cat(kJob, question)).status, 200);
    return place_.done.lock()->reads - before;
  };
  EXPECT_EQ(reads_of("/series"), 3);  // nobody has told yet how far they go
  board_.note_series("default/digits", {.version = 1, .newest = 9});
  EXPECT_EQ(reads_of("/series"), 1);
  EXPECT_EQ(reads_of("/series?points=5"), 1);
  EXPECT_EQ(reads_of("/heatmap"), 1);
  EXPECT_EQ(reads_of("/heatmap"), 0);
  board_.note_series("default/digits", {.version = 2, .newest = 10});
  EXPECT_EQ(reads_of("/heatmap"), 1);
  Json changed = running_job();
  changed["status"]["members"][0]["host"] = "there";
  board_.apply({.objects = {changed}});
  EXPECT_EQ(get(str_cat(kJob, "/heatmap")).json()["members"][0]["node"], "there");
}

TEST_F(ServerTest, DetailsOfAJobAreTold) {
  open_session();
  EXPECT_EQ(get(str_cat(kJob, "/series?points=5")).json()["stepsPerPoint"], 2);
  const Json map = get(str_cat(kJob, "/heatmap?from=2&to=5&columns=100&parts=compute")).json();
  EXPECT_EQ(map["steps"], Json({2, 3, 4, 5}));
  EXPECT_EQ(map["values"]["compute"], Json::array({{1, 1, 1, 1}}));
  EXPECT_EQ(map["members"][0]["node"], "here");
  EXPECT_EQ(get(str_cat(kJob, "/timeline")).json()["items"][0]["kind"], "View");
  EXPECT_EQ(get(str_cat(kJob, "/events")).json()["events"][0]["reason"], "ViewChanged");
  EXPECT_EQ(get(str_cat(kJob, "/yaml")).body, "kind: TrainingJob\n");
  EXPECT_FALSE(get(str_cat(kJob, "/next")).json()["decisions"].empty());
  const Json log = get(str_cat(kJob, "/logs")).json()["logs"][0];
  EXPECT_EQ(log["pod"], "digits-worker-0-0");
  EXPECT_EQ(log["live"], true);
  EXPECT_EQ(get(str_cat(kJob, "/logs/digits-worker-0-0?tail=2")).body, "line 0\nline 1\n");
  EXPECT_EQ(get(str_cat(kJob, "/logs/other")).status, 404);
  for (const char* query : {"/series?points=x", "/heatmap?from=-1", "/heatmap?columns=1.5",
                            "/logs/digits-worker-0-0?tail=all", "/series?points=0", "/series?points=4097",
                            "/heatmap?columns=2049", "/heatmap?from=5&to=4", "/heatmap?parts=step,sleep",
                            "/logs/digits-worker-0-0?tail=100001", "/series?points=1%00", "/events%00/more"})
    EXPECT_EQ(get(str_cat(kJob, query)).status, 400) << query;
}

TEST_F(ServerTest, CurvesDoNotWaitForAnApiServerThatHangs) {
  open_session();
  place_.hang.lock()->hangs = true;
  std::vector<HttpReader> readers;
  for (int i = 0; i < 10; ++i) {
    readers.emplace_back(server_->port());
    readers.back().send(text_of("GET", str_cat(kJob, i % 2 == 0 ? "/events" : "/timeline"), session()));
  }
  place_.hang.lock_when([](const Hang& now) { return now.waiting == 3; }, std::chrono::minutes(1));
  for (const char* question : {"/series", "/heatmap", "/yaml"})
    EXPECT_EQ(get(str_cat(kJob, question)).status, 200) << question;
  place_.hang.lock()->hangs = false;
  for (HttpReader& each : readers) EXPECT_THAT(each.rest(), StartsWith("HTTP/1.1 200 "));
}

// Admits whoever says who he is.
struct NamedGate final : Gate {
  void admit(const web::HttpRequest& request, const Need&, Then then) override {
    then({.viewer = {.user = request.header("x-user"), .token = "t"}});
  }
  void open(const web::HttpRequest&, const std::string&, std::function<void(Opened)> then) override {
    then({});
  }
};

TEST_F(ServerTest, QuestionsOfOneViewerHoldUpNoOther) {
  NamedGate gate;
  auto server = Server::start(board_, place_, {.gate = &gate}, clock_);
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  place_.hang.lock()->hangs = true;
  std::vector<HttpReader> readers;
  for (int i = 0; i < 10; ++i) {
    readers.emplace_back(server_->port());
    readers.back().send(text_of("GET", str_cat(kJob, "/events"), "Host: x\r\nX-User: eve\r\n"));
  }
  (void)place_.hang.lock_when([](const Hang& now) { return now.waiting == 2; }, std::chrono::minutes(1));
  EXPECT_EQ(ask(text_of("GET", str_cat(kJob, "/logs"), "Host: x\r\nX-User: ada\r\n")).status, 200);
  place_.hang.lock()->hangs = false;
  for (HttpReader& each : readers) EXPECT_THAT(each.rest(), StartsWith("HTTP/1.1 200 "));
  server_.reset();  // before the gate
}

TEST_F(ServerTest, LongLogsAreToldFromTheirEnd) {
  open_session();
  const Answer answer = get(str_cat(kJob, "/logs/digits-worker-0-0?tail=100000"));
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body, ::testing::EndsWith("line 99999\n"));
}

TEST_F(ServerTest, ActionsAreDoneAndRecorded) {
  open_session();
  EXPECT_EQ(post(str_cat(kJob, "/suspend")).status, 202);
  EXPECT_EQ(post(str_cat(kJob, "/scale"), "{\"replicas\": 4}").status, 202);
  EXPECT_EQ(place_.done.lock()->patches,
            (std::vector{
                Json::parse(R"({"metadata":{"uid":"digits"},"spec":{"runPolicy":{"suspend":true}}})"),
                Json::parse(
                    R"({"metadata":{"uid":"digits"},"spec":{"replicaSpecs":{"worker":{"replicas":4}}}})")}));
  EXPECT_EQ(ask(text_of("DELETE", kJob, session())).status, 202);
  (void)place_.done.lock_when([](const Done& done) { return !done.removed.empty(); },
                              std::chrono::minutes(1));
  EXPECT_EQ(place_.done.lock()->removed, std::vector<std::string>{"digits"});
  EXPECT_EQ(place_.done.lock()->records.size(), 3U);
}

TEST_F(ServerTest, ActionsThatMakeNoSenseAreRefused) {
  open_session();
  EXPECT_EQ(post(str_cat(kJob, "/resume")).status, 409);
  EXPECT_EQ(post(str_cat(kJob, "/replace"), "{\"member\": \"worker-0\"}").status, 409);
  EXPECT_EQ(post(str_cat(kJob, "/scale"), "{\"replicas\": 5}").status, 400);
  EXPECT_EQ(post(str_cat(kJob, "/scale"), "no json").status, 400);
  EXPECT_EQ(post(str_cat(kJob, "/fly")).status, 404);
  EXPECT_EQ(post("/api/v1/jobs/default/other/suspend").status, 404);
  EXPECT_TRUE(place_.done.lock()->patches.empty());
}

TEST_F(ServerTest, RequestsBecomeAnnotations) {
  open_session();
  EXPECT_EQ(post(str_cat(kJob, "/checkpoint")).status, 202);
  const Json patch = place_.done.lock()->patches.at(0);
  EXPECT_FALSE(patch["metadata"]["annotations"]["paceline.dev/checkpoint"].get<std::string>().empty());
  EXPECT_EQ(patch["metadata"]["uid"], "digits");
  EXPECT_EQ(place_.done.lock()->records.at(0), "UserAction: ada asked by the dashboard to save a checkpoint");
}

// The board may be behind what was done a moment ago.
TEST_F(ServerTest, JobIsLookedAtAgainBeforeItIsChanged) {
  open_session();
  Json behind = running_job();
  behind["spec"]["runPolicy"]["suspend"] = true;
  board_.apply({.objects = {behind}});
  EXPECT_EQ(post(str_cat(kJob, "/suspend")).status, 409) << "the board knows";
  EXPECT_EQ(post(str_cat(kJob, "/resume")).status, 409) << "it is not suspended any more";
  EXPECT_TRUE(place_.done.lock()->patches.empty());
  EXPECT_TRUE(place_.done.lock()->records.empty());
}

TEST_F(ServerTest, SuccessorOfAJobIsLeftAsItIs) {
  open_session();
  const std::string seen = "/api/v1/jobs/default/digits@digits",
                    earlier = "/api/v1/jobs/default/digits@older";
  EXPECT_EQ(ask(text_of("DELETE", earlier, session())).status, 409);
  EXPECT_EQ(post(str_cat(earlier, "/suspend")).status, 409);
  EXPECT_EQ(post(str_cat(earlier, "/scale"), "{\"replicas\": 4}").status, 409);
  EXPECT_TRUE(place_.done.lock()->records.empty());
  EXPECT_EQ(post(str_cat(seen, "/suspend")).status, 202);
  EXPECT_EQ(ask(text_of("DELETE", seen, session())).status, 202);
  EXPECT_EQ(place_.done.lock()->removed, std::vector<std::string>{"digits"});
  // The board may not know yet of the one that has the name now.
  Json gone = running_job();
  gone["metadata"]["uid"] = "older";
  board_.apply({.objects = {gone}});
  for (const std::string& path : {std::string(kJob), earlier}) {
    EXPECT_EQ(ask(text_of("DELETE", path, session())).status, 409) << path;
    EXPECT_EQ(post(str_cat(path, "/suspend")).status, 409) << path;
  }
  EXPECT_EQ(place_.done.lock()->removed.size(), 1U);
  EXPECT_EQ(place_.done.lock()->patches.size(), 1U);
}

TEST_F(ServerTest, NothingIsDoneWhereItCannotBeRecorded) {
  open_session();
  place_.reads_only = place_.slow = true;
  EXPECT_EQ(ask(text_of("DELETE", kJob, session())).status, 403);
  EXPECT_EQ(post(str_cat(kJob, "/suspend")).status, 403);
  EXPECT_TRUE(place_.done.lock()->removed.empty());
  EXPECT_TRUE(place_.done.lock()->patches.empty());
}

TEST_F(ServerTest, StreamsTellWhatChanges) {
  open_session();
  HttpReader reader(server_->port());
  reader.send(str_cat("GET /api/v1/stream?jobs=1&job=default/digits HTTP/1.1\r\n", session(), "\r\n"));
  EXPECT_THAT(reader.until("event: job\n"), HasSubstr("Content-Type: text/event-stream"));
  EXPECT_THAT(reader.until("event: jobs\n"), HasSubstr("\"full\":true"));
  Json changed = running_job();
  changed["status"]["phase"] = "Succeeded";
  clock_.advance(std::chrono::seconds(1));
  board_.apply({.objects = {changed}});
  reader.until("\"phase\":\"Succeeded\"");
  EXPECT_EQ(get("/api/v1/stream").status, 400);
  EXPECT_EQ(get("/api/v1/stream?job=default/other").status, 404);
}

TEST_F(ServerTest, LogsAreFollowed) {
  open_session();
  const Answer answer = get(str_cat(kJob, "/logs/digits-worker-0-0/stream?tail=3"));
  EXPECT_THAT(answer.body, HasSubstr("line 2\\n"));
  EXPECT_THAT(answer.body, HasSubstr("event: end"));
}

TEST_F(ServerTest, HugeAndOddRequestsAreRefused) {
  open_session();
  EXPECT_EQ(post("/api/v1/session", std::string(100'000, 'x')).status, 413);
  const Answer head =
      ask(text_of("GET", "/", str_cat(host_line(), "X: ", std::string(1 << 20, 'x'), "\r\n")));
  EXPECT_NE(head.status, 200);
  std::string deep(10'000, '[');
  EXPECT_EQ(post("/api/v1/session", deep).status, 400);
  Rng rng(1, 0);
  for (int i = 0; i < 100; ++i) {
    std::string text = i % 2 == 0 ? str_cat("POST /api/v1/session HTTP/1.1\r\n", host_line()) : "";
    for (std::uint64_t k = rng.below(2000); k > 0; --k) text += static_cast<char>(rng.below(256));
    HttpReader(server_->port()).send(text);
  }
  EXPECT_EQ(get("/api/v1/jobs").status, 200);
}

TEST_F(ServerTest, PortsInUseAreAnError) {
  EXPECT_EQ(Server::start(board_, place_, {.address = str_cat("127.0.0.1:", server_->port())}, clock_)
                .status()
                .code(),
            absl::StatusCode::kUnavailable);
}

// A gate that refuses whoever comes.
struct ClosedGate final : Gate {
  Refusal refusal;
  void admit(const web::HttpRequest&, const Need&, Then then) override {
    then({.refusal = refusal, .viewer = {.user = "eve"}});
  }
  void open(const web::HttpRequest&, const std::string&, std::function<void(Opened)> then) override {
    then({});
  }
};

TEST_F(ServerTest, TheAuditSaysWhyAnActionWasRefused) {
  ClosedGate gate;
  Guarded<std::vector<std::string>> audited;
  const auto audit = [&](const Viewer&, Action, const std::string&, const std::string& result) {
    audited.lock()->push_back(result);
  };
  auto server = Server::start(board_, place_, {.gate = &gate, .audit = audit}, clock_);
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  for (const int status : {403, 429, 503}) {
    gate.refusal = {status, "Code", "words", ""};
    EXPECT_EQ(ask(text_of("DELETE", kJob, host_line())).status, status);
  }
  EXPECT_THAT(*audited.lock(), ::testing::ElementsAre("forbidden", "refused: words", "refused: words"));
  server_.reset();  // before its gate
}

TEST_F(ServerTest, ActionsOnJobsThatAreNotThereAreAudited) {
  Guarded<std::vector<std::string>> audited;
  const auto audit = [&](const Viewer&, Action, const std::string& job, const std::string& result) {
    audited.lock()->push_back(job + " " + result);
  };
  auto server = Server::start(board_, place_, {.user = "ada", .audit = audit}, clock_);
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  open_session();
  EXPECT_EQ(post("/api/v1/jobs/default/none/suspend").status, 404);
  EXPECT_EQ(get("/api/v1/jobs/default/none").status, 404);
  EXPECT_THAT(*audited.lock(), ::testing::ElementsAre(StartsWith("default/none refused: ")));
}

}  // namespace
}  // namespace paceline::dashboard

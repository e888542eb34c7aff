#include "controller/cluster/kube/curl_transport.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <optional>
#include <thread>
#include <vector>

#include "base/guarded.h"
#include "base/text.h"
#include "tests/unit/controller/cluster/kube/transport_fixture.h"

namespace paceline::kube {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

std::string said(const absl::StatusOr<Response>& response) {
  return std::string(response.status().message());
}

TEST(CurlTransportTest, SendsWhatIsAskedAndBringsTheAnswer) {
  Guarded<ScriptedRequest> seen;
  ScriptedHttpServer server([&](const ScriptedRequest& request, ScriptedAnswer& answer) {
    *seen.lock() = request;
    answer.reply(request.method == "DELETE" ? 429 : 201, "{\"a\":1}", "Retry-After: 7\r\n");
  });
  const auto transport =
      open_transport({.server = server.url() + "/prefix/"}, {.headers = {{"Authorization", "Bearer t"}}});
  const Response created = answered(transport->call({.method = Method::kPost,
                                                     .path = "/api/v1/pods?x=a%20b",
                                                     .content_type = "application/json",
                                                     .body = std::string("{\0}", 3)}));
  EXPECT_EQ(created.status, 201);
  EXPECT_EQ(created.body, "{\"a\":1}");
  EXPECT_EQ(created.content_type, "application/json");
  EXPECT_EQ(created.retry_after, std::optional<Duration>(7s));
  {
    auto request = seen.lock();
    EXPECT_EQ(request->method, "POST");
    EXPECT_EQ(request->target, "/prefix/api/v1/pods?x=a%20b");
    EXPECT_EQ(request->body, std::string("{\0}", 3));
    EXPECT_EQ(request->headers["content-type"], "application/json");
    EXPECT_EQ(request->headers["authorization"], "Bearer t");
    EXPECT_EQ(request->headers["accept"], "application/json");
    EXPECT_THAT(request->headers["user-agent"], ::testing::StartsWith("paceline/"));
    EXPECT_EQ(request->headers.count("accept-encoding"), 0u);
    EXPECT_EQ(request->headers.count("expect"), 0u);
  }
  const std::pair<Method, const char*> methods[] = {
      {Method::kGet, "GET"}, {Method::kPut, "PUT"}, {Method::kPatch, "PATCH"}, {Method::kDelete, "DELETE"}};
  for (const auto& [method, name] : methods) {
    EXPECT_EQ(answered(transport->call({.method = method, .path = "/x"})).status,
              method == Method::kDelete ? 429 : 201)
        << "any HTTP status is an answer";
    auto request = seen.lock();
    EXPECT_EQ(request->method, name);
    EXPECT_EQ(request->body, "");
    EXPECT_EQ(request->headers.count("content-type"), 0u);
  }
  const std::string large(3u << 20, 'x');
  ASSERT_TRUE(
      transport->call({.method = Method::kPut, .path = "/x", .content_type = "a/b", .body = large}).ok());
  EXPECT_EQ(seen.lock()->body, large);
  EXPECT_EQ(server.connections(), 1) << "one connection served them all";
}

TEST(CurlTransportTest, WrongAddressesAndPathsAreRefusedBeforeAnythingIsSent) {
  for (const char* server :
       {"", "10.0.0.1:6443", "ftp://a", "https://", "https://u:p@a", "https://a?b=c", "https://a:99999"}) {
    const auto transport = open_curl_transport({.server = server}, fixed_credentials({}), Logger::none());
    EXPECT_EQ(transport.status().code(), absl::StatusCode::kInvalidArgument) << server;
    EXPECT_THAT(std::string(transport.status().message()), HasSubstr("https://10.0.0.1:6443")) << server;
  }
  const auto proxied = open_curl_transport({.server = "https://a", .proxy_url = "gopher://p"},
                                           fixed_credentials({}), Logger::none());
  EXPECT_THAT(std::string(proxied.status().message()),
              AllOf(HasSubstr("gopher://p"), HasSubstr("socks5://")));
  const auto transport = open_transport({.server = "http://127.0.0.1:1"}, {});
  for (const char* path : {"", "api", "/a b", "/a\r\nEvil: 1"})
    EXPECT_EQ(code_of(transport->call({.path = path})), absl::StatusCode::kInvalidArgument) << path;
  EXPECT_EQ(code_of(transport->call({.path = "/", .content_type = "a\nb"})),
            absl::StatusCode::kInvalidArgument);
  const auto evil =
      open_transport({.server = "http://127.0.0.1:1"}, {.headers = {{"Impersonate-User", "a\r\nb: c"}}});
  EXPECT_EQ(code_of(evil->call(get("/"))), absl::StatusCode::kUnauthenticated);
}

TEST(CurlTransportTest, RedirectsAreNotFollowed) {
  ScriptedHttpServer server([](const ScriptedRequest&, ScriptedAnswer& answer) {
    answer.reply(302, "", "Location: http://127.0.0.1:1/elsewhere\r\n");
  });
  EXPECT_EQ(answered(open_transport({.server = server.url()})->call(get("/"))).status, 302);
}

TEST(CurlTransportTest, BadAnswersAreErrorsOfTheRightKind) {
  struct Case {
    const char* target;
    absl::StatusCode code;
    std::string answer;      // as it goes over the wire, and then the connection is closed
    std::string for_ever{};  // what follows it before that, again and again
  };
  using enum absl::StatusCode;
  const std::string head = "HTTP/1.1 200 OK\r\n", megabyte(1u << 20, 'x');
  const std::vector<Case> cases = {
      {"/garbage", kUnavailable, "\x01\x02 nonsense\r\n\r\n\xff"},
      {"/tls-on-plain", kUnavailable, std::string("\x15\x03\x01\0\x02\x02\x46", 7)},
      {"/nothing", kUnavailable, ""},
      {"/half-head", kUnavailable, "HTTP/1.1 200 OK\r\nContent-"},
      {"/half-body", kUnavailable, head + "Content-Length: 100\r\n\r\nhalf"},
      {"/half-chunk", kUnavailable, head + "Transfer-Encoding: chunked\r\n\r\n10\r\nhalf"},
      {"/bad-chunk", kUnavailable, head + "Transfer-Encoding: chunked\r\n\r\nzz\r\nhalf"},
      {"/endless-headers", kResourceExhausted, head, "X-Header: " + std::string(1000, 'x') + "\r\n"},
      {"/endless-body", kResourceExhausted, head + "\r\n", megabyte},
      {"/100-megabytes-in-a-line", kResourceExhausted, head + "Content-Length: 104857600\r\n\r\n", megabyte},
      {"/lying-length", kUnavailable, head + "Content-Length: -5\r\n\r\nx"},
  };
  ScriptedHttpServer server([&](const ScriptedRequest& request, ScriptedAnswer& answer) {
    answer.close();
    for (const Case& c : cases) {
      if (request.target != c.target) continue;
      if (!c.answer.empty()) answer.send(c.answer);
      while (!c.for_ever.empty() && answer.send(c.for_ever)) {
      }
      return;
    }
    answer.reply(200, "well");
  });
  const auto transport = open_transport({.server = server.url()});
  for (const Case& c : cases) {
    Request request = get(c.target);
    request.max_response_bytes = 4u << 20;
    const auto response = transport->call(request);
    EXPECT_EQ(code_of(response), c.code) << c.target << ": " << response.status();
    EXPECT_THAT(said(response), HasSubstr(c.target));
    EXPECT_EQ(transport->call(get("/well"))->body, "well") << "after " << c.target;
  }
}

TEST(CurlTransportTest, InterimAnswersAndTrailersAreNoneOfOurs) {
  ScriptedHttpServer server([](const ScriptedRequest&, ScriptedAnswer& answer) {
    answer.send(
        "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n"
        "Trailer: X-Sum\r\n\r\n2\r\nok\r\n0\r\nX-Sum: 1\r\n\r\n");
  });
  const Response response = answered(open_transport({.server = server.url()})->call(get("/")));
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "ok");
}

TEST(CurlTransportTest, TheLimitIsExact) {
  ScriptedHttpServer server(
      [](const ScriptedRequest&, ScriptedAnswer& answer) { answer.reply(200, std::string(1000, 'x')); });
  const auto transport = open_transport({.server = server.url()});
  Request request = get("/");
  request.max_response_bytes = 1000;
  EXPECT_EQ(transport->call(request)->body.size(), 1000u);
  request.max_response_bytes = 999;
  EXPECT_EQ(code_of(transport->call(request)), absl::StatusCode::kResourceExhausted);
  request.max_response_bytes = 0;
  EXPECT_EQ(code_of(transport->call(request)), absl::StatusCode::kResourceExhausted);
}

TEST(CurlTransportTest, ASilentOrSlowServerMeetsTheDeadline) {
  ScriptedHttpServer server([](const ScriptedRequest& request, ScriptedAnswer& answer) {
    if (request.target == "/silence") return answer.hold();
    answer.send("HTTP/1.1 200 OK\r\n\r\n");
    while (answer.send("x") && answer.pause(1ms)) {
    }
    answer.close();
  });
  const auto transport = open_transport({.server = server.url()});
  for (const char* target : {"/silence", "/trickle"}) {
    const auto response = transport->call(get(target, 100ms));
    EXPECT_EQ(code_of(response), absl::StatusCode::kDeadlineExceeded) << target << response.status();
    EXPECT_THAT(said(response), HasSubstr(target));
  }
}

TEST(CurlTransportTest, AbsentServerIsUnavailable) {
  std::optional<ScriptedHttpServer> server(std::in_place, [](const ScriptedRequest&, ScriptedAnswer&) {});
  const auto transport = open_transport({.server = server->url()});
  server.reset();
  EXPECT_EQ(code_of(transport->call(get("/"))), absl::StatusCode::kUnavailable);
  EXPECT_EQ(code_of(transport->stream(get("/"), pass_over, {})), absl::StatusCode::kUnavailable);
}

TEST(CurlTransportTest, AServerThatDiesAndComesBackIsFoundAgain) {
  ScriptedHttpServer server([](const ScriptedRequest& request, ScriptedAnswer& answer) {
    request.target == "/hold" ? answer.hold() : static_cast<void>(answer.reply(200, "well"));
  });
  const auto transport = open_transport({.server = server.url()});
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(transport->call(get("/"))->body, "well");
    std::latch called(1);
    std::jthread caller([&] {
      called.count_down();
      EXPECT_EQ(code_of(transport->call(get("/hold"))), absl::StatusCode::kUnavailable);
    });
    called.wait();
    server.stop();
    caller.join();
    EXPECT_EQ(code_of(transport->call(get("/"))), absl::StatusCode::kUnavailable);
    server.start();
  }
  EXPECT_EQ(transport->call(get("/"))->body, "well");
}

TEST(CurlTransportTest, AThousandCallsAtOnceShareAHundredConnections) {
  ScriptedHttpServer server(
      [](const ScriptedRequest& request, ScriptedAnswer& answer) { answer.reply(200, request.target); });
  const auto transport = open_transport({.server = server.url()});
  std::atomic<int> good{0};
  {
    std::latch all(1000);
    std::vector<std::jthread> callers;
    for (int i = 0; i < 1000; ++i) {
      callers.emplace_back([&, i] {
        all.arrive_and_wait();
        const std::string path = str_cat("/", i);
        const auto response = transport->call(get(path, 5min));
        EXPECT_TRUE(response.ok()) << response.status();
        good += response.ok() && response->body == path;
      });
    }
  }
  EXPECT_EQ(good, 1000);
  EXPECT_LE(server.connections(), kMaxCallsInFlight);
}

TEST(CurlTransportTest, CallsThatWaitForAPlaceKeepTheirDeadlines) {
  ScriptedHttpServer server([](const ScriptedRequest&, ScriptedAnswer& answer) { answer.hold(); });
  const auto transport = open_transport({.server = server.url()});
  std::vector<std::jthread> callers;
  std::atomic<int> late{0};
  for (int i = 0; i < 2 * kMaxCallsInFlight; ++i) {
    callers.emplace_back(
        [&] { late += code_of(transport->call(get("/", 300ms))) == absl::StatusCode::kDeadlineExceeded; });
  }
  callers.clear();
  EXPECT_EQ(late, 2 * kMaxCallsInFlight);
}

class ChangingCredentials final : public Credentials {
 public:
  absl::StatusOr<IdentityPtr> get(Deadline, std::stop_token) override {
    if (broken) return absl::UnauthenticatedError("no credentials to be had");
    auto identity = std::make_shared<Identity>();
    identity->number = static_cast<std::uint64_t>(number);
    identity->headers = {{"Authorization", str_cat("Bearer ", number.load())}};
    return identity;
  }
  void refused(const Identity&) override {
    ++refusals;
    if (changes) ++number;
  }
  std::atomic<int> number{1}, refusals{0};
  std::atomic<bool> changes{true}, broken{false};
};

TEST(CurlTransportTest, A401FetchesCredentialsAnewOnce) {
  std::atomic<int> wanted{2};
  ScriptedHttpServer server([&](const ScriptedRequest& request, ScriptedAnswer& answer) {
    const bool good = request.headers.at("authorization") == str_cat("Bearer ", wanted.load());
    answer.reply(good ? 200 : 401, request.method + request.body);
  });
  const auto credentials = std::make_shared<ChangingCredentials>();
  const auto transport = *open_curl_transport({.server = server.url()}, credentials, Logger::none());
  const Request post{.method = Method::kPost, .path = "/", .content_type = "a/b", .body = "body"};
  auto response = transport->call(post);
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->body, "POSTbody") << "the same call again";
  EXPECT_EQ(server.requests(), 2);
  wanted = 3;
  std::string streamed;
  response = transport->stream(get("/"), [&](std::string_view bytes) { return streamed += bytes, true; }, {});
  EXPECT_EQ(response->status, 200) << response.status();
  EXPECT_EQ(streamed, "GET") << "the 401's body is not streamed";
  wanted = 99;
  EXPECT_EQ(transport->call(post)->status, 401);
  EXPECT_EQ(server.requests(), 6) << "once, not more";
  credentials->changes = false;
  EXPECT_EQ(transport->call(post)->status, 401);
  EXPECT_EQ(server.requests(), 7) << "not at all with the same credentials";
  credentials->broken = true;
  EXPECT_EQ(code_of(transport->call(post)), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(server.requests(), 7);
}

}  // namespace
}  // namespace paceline::kube

// HTTP/2: calls share a connection, and a server that asks its clients to go elsewhere (GOAWAY, as the API
// server does to spread its load, and before it ends) costs no call.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include "base/guarded.h"
#include "tests/support/scripted_h2_server.h"
#include "tests/support/test_certificates.h"
#include "tests/unit/controller/cluster/kube/transport_fixture.h"

namespace paceline::kube {
namespace {

using Do = ScriptedH2Server::Do;
using namespace std::chrono_literals;

class CurlH2Test : public ::testing::Test {
 protected:
  std::unique_ptr<Transport> open(const ScriptedH2Server& server) {
    return open_transport({.server = server.url(), .ca_pem = authority_.certificate_pem()});
  }
  static Request post() {
    return {.method = Method::kPost, .path = "/api/v1/pods", .content_type = "a/b", .body = "{}"};
  }
  const TestAuthority authority_{"kubernetes"};
  const KeyPair pair_ = authority_.issue("server", "IP:127.0.0.1");
};

TEST_F(CurlH2Test, CallsShareOneConnectionAndNoneIsForgotten) {
  ScriptedH2Server server(pair_, [](int, int) { return Do::kAnswer; });
  const auto transport = open(server);
  ASSERT_TRUE(transport->call(post()).ok());
  constexpr int kRounds = 25, kCallers = 50;
  for (int round = 0; round < kRounds; ++round) {
    Guarded<int> answered{0};
    std::latch all(kCallers);
    std::vector<std::jthread> callers;
    for (int i = 0; i < kCallers; ++i) {
      callers.emplace_back([&] {
        all.arrive_and_wait();
        const auto response = transport->call(get("/"));
        EXPECT_TRUE(response.ok()) << response.status();
        ++*answered.lock();
      });
    }
    // An answer that has come is looked at, and not when curl's next timer runs, after 10 s.
    bool in_time = false;
    (void)answered.lock_when([](int n) { return n == kCallers; }, 6s, &in_time);
    ASSERT_TRUE(in_time) << "in round " << round;
  }
  EXPECT_EQ(server.connections(), 1);
}

// Each request by itself on a connection that was kept and goes away at that moment.
TEST_F(CurlH2Test, ARequestThatMeetsGoAwayIsSentAgain) {
  for (const Do refusal : {Do::kRefuseAndGo, Do::kRefuseAndEnd}) {
    ScriptedH2Server server(pair_,
                            [&](int, int request) { return request % 2 == 0 ? refusal : Do::kAnswer; });
    const auto transport = open(server);
    for (int i = 1; i <= 10; ++i) {
      const Response response = answered(transport->call(post()));
      EXPECT_EQ(response.status, 200);
      EXPECT_EQ(response.body, std::to_string(i)) << "on a new connection";
      EXPECT_EQ(server.answered(), i) << "once";
    }
  }
}

// The API server may say good-bye with any answer, also with the first of a connection.
TEST_F(CurlH2Test, AGoodByeThatComesWithTheAnswerCostsNoCall) {
  ScriptedH2Server server(pair_,
                          [](int, int request) { return request % 3 == 0 ? Do::kAnswer : Do::kAnswerAndGo; });
  const auto transport = open(server);
  for (int i = 1; i <= 30; ++i) EXPECT_EQ(answered(transport->call(post())).status, 200) << i;
}

TEST_F(CurlH2Test, ManyCallsThroughManyGoodByesAreAllAnswered) {
  ScriptedH2Server server(pair_, [](int, int request) {
    return request % 151 == 0 ? Do::kRefuseAndGo : request % 211 == 0 ? Do::kAnswerAndGo : Do::kAnswer;
  });
  const auto transport = open(server);
  constexpr int kCallers = 8, kCalls = 100;
  std::atomic<int> good{0};
  {
    std::vector<std::jthread> callers;
    for (int i = 0; i < kCallers; ++i) {
      callers.emplace_back([&] {
        for (int call = 0; call < kCalls; ++call) {
          const auto response = transport->call(post());
          EXPECT_TRUE(response.ok()) << response.status();
          good += response.ok();
        }
      });
    }
  }
  EXPECT_EQ(good, kCallers * kCalls);
  EXPECT_GE(server.answered(), kCallers * kCalls);
  EXPECT_GT(server.connections(), 5);
}

TEST_F(CurlH2Test, AServerThatOnlySendsAwayIsAnError) {
  ScriptedH2Server server(pair_, [](int, int) { return Do::kRefuseAndGo; });
  const auto transport = open(server);
  EXPECT_EQ(code_of(transport->call(post())), absl::StatusCode::kUnavailable);
  EXPECT_EQ(server.answered(), 0);
  EXPECT_LE(server.connections(), 20) << "it is not tried for ever";
}

}  // namespace
}  // namespace paceline::kube

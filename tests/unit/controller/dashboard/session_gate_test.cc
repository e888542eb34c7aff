#include "controller/dashboard/session_gate.h"

#include <gtest/gtest.h>

#include <future>
#include <utility>

#include "base/text.h"
#include "tests/support/fake_clock.h"

namespace paceline::dashboard {
namespace {

class SessionGateTest : public ::testing::Test {
 protected:
  void open_session(SessionGate& gate) {
    gate.open({}, gate.new_token(), [&](Gate::Opened opened) {
      request_.headers["cookie"] = opened.cookie.substr(0, opened.cookie.find(';'));
      request_.headers[kCsrfHeader] = opened.told["csrf"].get<std::string>();
    });
  }
  Admission admitted(SessionGate& gate, const Need& need) {
    std::promise<Admission> promise;
    gate.admit(request_, need, [&](Admission admission) { promise.set_value(std::move(admission)); });
    return promise.get_future().get();
  }

  FakeClock clock_;
  web::HttpRequest request_{.method = "GET", .path = "/"};
};

const Need kWithRights{.verb = "get", .ns = "a", .name = "x", .rights = true};

TEST_F(SessionGateTest, ProcessHasAllRightsWhereNobodyIsAsked) {
  SessionGate gate("ada", "session", nullptr, clock_);
  EXPECT_EQ(admitted(gate, kWithRights).refusal->status, 401);
  open_session(gate);
  const Admission admission = admitted(gate, kWithRights);
  ASSERT_FALSE(admission.refusal);
  EXPECT_EQ(admission.viewer.user, "ada");
  EXPECT_EQ(admission.sight->look({}).rights, Rights());
}

TEST_F(SessionGateTest, RightsAreAskedForAndCountForAWhile) {
  std::atomic<int> asked = 0;
  std::atomic<bool> may_update = false;
  SessionGate gate(
      "ada", "session",
      [&](const std::string& ns, const std::string& name) {
        EXPECT_EQ(str_cat(ns, "/", name), "a/x");
        ++asked;
        return Rights{.update = may_update, .remove = true};
      },
      clock_);
  open_session(gate);
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(admitted(gate, kWithRights).sight->look({}).rights.update);
  EXPECT_EQ(asked, 1);
  EXPECT_FALSE(admitted(gate, {.verb = "update", .ns = "a", .name = "x"}).refusal)
      << "the API server will say";
  may_update = true;
  clock_.advance(AccessCache::kKept);
  EXPECT_TRUE(admitted(gate, kWithRights).sight->look({}).rights.update);
  EXPECT_EQ(asked, 2);
  gate.close();
}

TEST_F(SessionGateTest, AnotherPagesCookieOfThatNameLocksNobodyOut) {
  SessionGate gate("ada", "session", nullptr, clock_);
  open_session(gate);
  request_.headers["cookie"] = "session=x; " + request_.headers["cookie"];
  EXPECT_FALSE(admitted(gate, {}).refusal);
  EXPECT_FALSE(admitted(gate, {.lists = true, .of_stream = true}).sight->look(clock_.now()).over);
  request_.headers["cookie"] = "session=x; session=";
  EXPECT_EQ(admitted(gate, {}).refusal->status, 401);
}

TEST_F(SessionGateTest, StreamIsAUseOfItsSessionAndEndsWithIt) {
  SessionGate gate("ada", "session", nullptr, clock_);
  open_session(gate);
  const auto sight = admitted(gate, {.lists = true, .of_stream = true}).sight;
  for (int i = 0; i < 3; ++i) {
    clock_.advance(Sessions::kUnused - std::chrono::seconds(1));
    EXPECT_FALSE(sight->look(clock_.now()).over);
  }
  EXPECT_FALSE(admitted(gate, {}).refusal);
  clock_.advance(Sessions::kUnused);
  EXPECT_TRUE(sight->look(clock_.now()).over);
  EXPECT_EQ(admitted(gate, {}).refusal->status, 401);
}

}  // namespace
}  // namespace paceline::dashboard

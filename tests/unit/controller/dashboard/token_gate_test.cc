#include "controller/dashboard/token_gate.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <map>
#include <set>
#include <thread>

#include "base/guarded.h"
#include "base/text.h"
#include "controller/cluster/kube/resources.h"
#include "tests/support/fake_clock.h"

namespace paceline::dashboard {
namespace {

using kube::Json;

// Answers reviews by tables, and counts them.
class ReviewServer final : public kube::Transport {
 public:
  absl::StatusOr<kube::Response> call(const kube::Request& request) override {
    if (broken) return absl::UnavailableError("gone");
    Json object = Json::parse(request.body);
    if (request.path.find("tokenreviews") != std::string::npos) {
      ++token_reviews;
      const std::string& token = kube::text_at(object, {"spec", "token"});
      if (token.starts_with("slow-"))
        (void)answers_slow.lock_when([](bool answers) { return answers; }, std::chrono::seconds(60));
      const auto found = users.find(token);
      object["status"] = {{"authenticated", found != users.end()}};
      if (found != users.end())
        object["status"]["user"] = {{"username", found->second}, {"groups", Json::array({"g"})}};
    } else {
      ++access_reviews;
      const Json& spec = kube::at(object, {"spec"});
      const Json& of = kube::at(spec, {"resourceAttributes"});
      EXPECT_EQ(kube::text_at(of, {"group"}), "paceline.dev");
      EXPECT_EQ(kube::at(spec, {"groups"}), Json::array({"g"}));
      object["status"] = {
          {"allowed", rights.contains({kube::text_at(spec, {"user"}), kube::text_at(of, {"verb"}),
                                       kube::text_at(of, {"namespace"})})}};
    }
    return kube::Response{201, object.dump(), std::nullopt, "application/json"};
  }
  absl::StatusOr<kube::Response> stream(const kube::Request&, const std::function<bool(std::string_view)>&,
                                        std::stop_token) override {
    return absl::UnimplementedError("");
  }
  std::map<std::string, std::string> users{{"t-ada", "ada"}, {"t-bob", "bob"}};
  std::set<std::tuple<std::string, std::string, std::string>> rights{
      {"ada", "get", "a"}, {"ada", "list", "a"}, {"ada", "update", "a"}, {"bob", "list", ""}};
  std::atomic<bool> broken = false;
  Guarded<bool> answers_slow{false};
  std::atomic<int> token_reviews = 0, access_reviews = 0;
};

class TokenGateTest : public ::testing::Test {
 protected:
  static web::HttpRequest request(const std::string& token, const std::string& peer = "10.0.0.1") {
    web::HttpRequest request{.method = "GET", .path = "/", .peer = peer};
    if (!token.empty()) request.headers["authorization"] = "Bearer " + token;
    return request;
  }
  Admission admitted(const std::string& token, const Need& need, const std::string& peer = "10.0.0.1") {
    std::promise<Admission> promise;
    gate_.admit(request(token, peer), need,
                [&](Admission admission) { promise.set_value(std::move(admission)); });
    return promise.get_future().get();
  }
  // POST /session with this token.
  int signs_in(const std::string& token, const std::string& peer) {
    std::promise<Admission> promise;
    gate_.open(request("", peer), token,
               [&](const Gate::Opened& opened) { promise.set_value(opened.admission); });
    const Admission admission = promise.get_future().get();
    return admission.refusal ? admission.refusal->status : 0;
  }
  int refused(const std::string& token, const Need& need) {
    const Admission admission = admitted(token, need);
    return admission.refusal ? admission.refusal->status : 0;
  }

  FakeClock clock_;
  ReviewServer server_;
  kube::ApiClient api_{server_, clock_, 1, {}, [](Duration, std::stop_token) { return true; }};
  TokenGate gate_{api_, [] { return std::vector<std::string>{"a", "b"}; }, clock_};
};

const Need kGet{.verb = "get", .ns = "a", .name = "x"};

TEST_F(TokenGateTest, NothingGoesWithoutAToken) {
  EXPECT_EQ(refused("", {}), 401);
  EXPECT_EQ(refused("wrong", {}), 401);
  EXPECT_EQ(refused("wrong", kGet), 401);
  EXPECT_EQ(refused(std::string(20'000, 'x'), {}), 401);
  EXPECT_EQ(server_.access_reviews, 0);
}

TEST_F(TokenGateTest, RightsOnAJobAreAskedFor) {
  EXPECT_EQ(refused("t-ada", kGet), 0);
  EXPECT_EQ(admitted("t-ada", kGet).viewer.user, "ada");
  EXPECT_EQ(admitted("t-ada", kGet).viewer.token, "t-ada");
  EXPECT_EQ(refused("t-ada", {.verb = "update", .ns = "a", .name = "x"}), 0);
  EXPECT_EQ(refused("t-ada", {.verb = "delete", .ns = "a", .name = "x"}), 403);
  EXPECT_EQ(refused("t-ada", {.verb = "get", .ns = "b", .name = "x"}), 403);
  EXPECT_EQ(refused("t-bob", kGet), 403);
  EXPECT_EQ(admitted("t-bob", kGet).viewer.user, "bob") << "for the audit";
}

TEST_F(TokenGateTest, RightsAreToldWhereTheyAreAskedFor) {
  Need need = kGet;
  need.rights = true;
  EXPECT_EQ(admitted("t-ada", need).sight->look({}).rights, (Rights{.update = true, .remove = false}));
  EXPECT_EQ(admitted("t-bob", need).refusal->status, 403) << "he may not see it";
  need.of_stream = true;
  const Admission stream = admitted("t-ada", need);
  server_.rights.erase({"ada", "update", "a"});
  clock_.advance(AccessCache::kKept);
  (void)stream.sight->look(clock_.now());  // asks
  while (stream.sight->look(clock_.now()).rights.update) std::this_thread::yield();
}

TEST_F(TokenGateTest, ListsAreOfNamespacesThatMayBeListed) {
  const auto seen = admitted("t-ada", {.lists = true}).sight->look({}).namespaces;
  ASSERT_NE(seen, nullptr);
  EXPECT_EQ(*seen, std::set<std::string>{"a"});
  EXPECT_EQ(admitted("t-bob", {.lists = true}).sight->look({}).namespaces, nullptr);
}

TEST_F(TokenGateTest, AnswersCountForSecondsOnly) {
  EXPECT_EQ(refused("t-ada", kGet), 0);
  server_.rights.clear();
  EXPECT_EQ(refused("t-ada", kGet), 0);
  EXPECT_EQ(server_.access_reviews, 1);
  clock_.advance(AccessCache::kKept);
  EXPECT_EQ(refused("t-ada", kGet), 403);
  server_.users.clear();
  clock_.advance(AccessCache::kKept);
  EXPECT_EQ(refused("t-ada", kGet), 401);
}

TEST_F(TokenGateTest, RequestsAreRefusedWhereTheServerDoesNotAnswer) {
  server_.broken = true;
  EXPECT_EQ(refused("t-ada", kGet), 503);
}

TEST_F(TokenGateTest, UsersThatAskTooOftenAreHeldBack) {
  int answered = 0;
  for (int i = 0; i < 2 * static_cast<int>(TokenGate::kBurst); ++i)
    answered += refused("t-ada", {}) == 0 ? 1 : 0;
  EXPECT_EQ(answered, static_cast<int>(TokenGate::kBurst));
  EXPECT_EQ(refused("t-ada", {}), 429);
  EXPECT_EQ(refused("t-bob", {}), 0);
}

TEST_F(TokenGateTest, UnknownTokensAreReviewedSeldom) {
  for (int i = 0; i < 200; ++i) (void)refused(str_cat("guess-", i), {});
  EXPECT_EQ(server_.token_reviews, static_cast<int>(TokenGate::kReviewsBurst));
}

TEST_F(TokenGateTest, AddressThatGuessesTokensIsHeldBackAlone) {
  EXPECT_EQ(signs_in("t-bob", "10.0.0.1"), 0);
  for (int i = 0; i < 2 * static_cast<int>(TokenGate::kReviewsBurst); ++i)
    (void)refused(str_cat("guess-", i), {});
  EXPECT_EQ(refused("another-guess", {}), 429);
  EXPECT_EQ(signs_in("t-ada", "10.0.0.1"), 429);
  EXPECT_EQ(signs_in("t-ada", "10.0.0.2"), 0);
  clock_.advance(AccessCache::kKept);
  for (int i = 0; i < static_cast<int>(TokenGate::kReviewsBurst); ++i) (void)refused(str_cat("new-", i), {});
  EXPECT_EQ(signs_in("t-bob", "10.0.0.1"), 0) << "he was known before";
}

TEST_F(TokenGateTest, SlowReviewsOfOneAddressHoldUpNoOther) {
  for (int i = 0; i < static_cast<int>(TokenGate::kReviewsBurst); ++i)
    gate_.admit(request(str_cat("slow-", i)), {}, [](const Admission&) {});
  EXPECT_EQ(signs_in("t-ada", "10.0.0.2"), 0);
  EXPECT_LE(server_.token_reviews, 3) << "two of the first address are not answered yet";
  *server_.answers_slow.lock() = true;
}

TEST_F(TokenGateTest, StreamsEndWithTheirRights) {
  const Admission admission = admitted("t-ada", {.lists = true, .of_stream = true});
  Sight& sight = *admission.sight;
  EXPECT_FALSE(sight.look(clock_.now()).over);
  server_.users.clear();
  clock_.advance(AccessCache::kKept);
  (void)sight.look(clock_.now());  // asks
  while (!sight.look(clock_.now()).over) std::this_thread::yield();
}

TEST_F(TokenGateTest, StreamsOfEachUserAreBounded) {
  const Need stream{.lists = true, .of_stream = true};
  std::vector<Admission> open;
  for (int i = 0; i < TokenGate::kMostStreams; ++i) open.push_back(admitted("t-ada", stream));
  EXPECT_FALSE(open.back().refusal);
  EXPECT_EQ(refused("t-ada", stream), 429);
  EXPECT_EQ(refused("t-bob", stream), 0);
  open.pop_back();
  EXPECT_EQ(refused("t-ada", stream), 0);
}

TEST_F(TokenGateTest, StreamsSeeWhatMayBeSeenBySeconds) {
  const Admission admission = admitted("t-ada", {.lists = true, .of_stream = true});
  Sight& sight = *admission.sight;
  server_.rights.insert({"ada", "list", "b"});
  clock_.advance(AccessCache::kKept);
  while (sight.look(clock_.now()).namespaces->size() != 2) std::this_thread::yield();
}

TEST_F(TokenGateTest, StreamsEndWhereTheServerDoesNotAnswerForLong) {
  const Admission admission = admitted("t-ada", {.lists = true, .of_stream = true});
  server_.broken = true;
  clock_.advance(AccessCache::kKept);
  EXPECT_FALSE(admission.sight->look(clock_.now()).over);
  clock_.advance(TokenGate::kPatience);
  EXPECT_TRUE(admission.sight->look(clock_.now()).over);
}

}  // namespace
}  // namespace paceline::dashboard

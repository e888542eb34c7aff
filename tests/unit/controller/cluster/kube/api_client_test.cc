#include "controller/cluster/kube/api_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

#include "base/retry_after.h"
#include "base/text.h"
#include "controller/cluster/kube/api_error.h"
#include "tests/support/fake_api_server.h"
#include "tests/support/fake_clock.h"

namespace paceline::kube {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

// Gives the answers of a test, one after the other, the last for ever.
class Script final : public Transport {
 public:
  std::deque<absl::StatusOr<Response>> answers;
  std::vector<Request> requests;
  absl::StatusOr<Response> call(const Request& request) override {
    requests.push_back(request);
    absl::StatusOr<Response> answer = answers.front();
    if (answers.size() > 1) answers.pop_front();
    return answer;
  }
  absl::StatusOr<Response> stream(const Request& request,
                                  const std::function<bool(std::string_view)>& on_bytes,
                                  std::stop_token) override {
    absl::StatusOr<Response> answer = call(request);
    if (answer.ok() && answer->status == 200) on_bytes(answer->body);
    return answer;
  }
};

class ApiClientTest : public ::testing::Test {
 protected:
  Script script_;
  FakeClock clock_;
  std::vector<Duration> pauses_;
  std::stop_source stop_;
  ApiClient api_{script_, clock_, 1, stop_.get_token(), [this](Duration time, std::stop_token stop) {
                   pauses_.push_back(time);
                   clock_.advance(time);
                   return !stop.stop_requested();
                 }};

  void answer(int status, const std::string& body, std::optional<Duration> retry_after = std::nullopt) {
    script_.answers.push_back(Response{status, body, retry_after, "application/json"});
  }
  Json body() { return Json::parse(script_.requests.back().body); }
};

TEST_F(ApiClientTest, VerbsSayWhatTheyMean) {
  answer(200, "{}");
  ASSERT_TRUE(api_.create(kPods, "n", {{"kind", "Pod"}}).ok());
  EXPECT_EQ(script_.requests.back().method, Method::kPost);
  EXPECT_EQ(script_.requests.back().path, "/api/v1/namespaces/n/pods?fieldManager=paceline-controller");
  EXPECT_EQ(script_.requests.back().content_type, "application/json");
  EXPECT_EQ(body(), (Json{{"kind", "Pod"}}));

  ASSERT_TRUE(api_.remove(kPods, "n", "a", {.uid = "u", .grace = 1500ms}).ok());
  EXPECT_EQ(script_.requests.back().method, Method::kDelete);
  EXPECT_EQ(body()["preconditions"]["uid"], "u");
  EXPECT_EQ(body()["gracePeriodSeconds"], 2);
  EXPECT_EQ(body()["propagationPolicy"], "Background");
  ASSERT_TRUE(api_.remove(kPods, "n", "a", {}).ok());
  EXPECT_FALSE(body().contains("preconditions"));
  EXPECT_FALSE(body().contains("gracePeriodSeconds"));

  ASSERT_TRUE(api_.apply(kTrainingJobs, "n", "j", "status", {{"status", {{"phase", "Running"}}}}).ok());
  EXPECT_EQ(script_.requests.back().method, Method::kPatch);
  EXPECT_EQ(script_.requests.back().content_type, "application/apply-patch+yaml");
  EXPECT_THAT(script_.requests.back().path, HasSubstr("/status?fieldManager=paceline-controller&force=true"));

  ASSERT_TRUE(api_.merge_patch(kTrainingJobs, "n", "j", "", {{"spec", {{"a", 1}}}}).ok());
  EXPECT_EQ(script_.requests.back().content_type, "application/merge-patch+json");
}

TEST_F(ApiClientTest, GarbageIsAnErrorThatShowsIt) {
  answer(200, "<html>\x1b[2J");
  const absl::Status status = api_.get(kPods, "n", "a").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr("GET /api/v1/namespaces/n/pods/a: "));
  EXPECT_THAT(std::string(status.message()), HasSubstr("\"<html>?[2J\""));
  script_.answers.clear();
  answer(200, "[]");
  EXPECT_EQ(api_.get(kPods, "n", "a").status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(api_.list({kPods, "", ""}, 5, "", {}).status().code(), absl::StatusCode::kDataLoss);
}

TEST_F(ApiClientTest, TransportErrorsPassAsTheyAre) {
  const absl::Status refused = absl::UnavailableError("GET https://h/api/v1/pods: refused");
  script_.answers.emplace_back(refused);
  const auto all = [](std::string_view) { return true; };
  EXPECT_EQ(api_.get(kPods, "n", "a").status(), refused);
  EXPECT_EQ(api_.watch({.resource = kPods}, "1", 1min, all, {}), refused);
  EXPECT_EQ(api_.stream_log("n", "a", {}, all, {}), refused);
}

TEST_F(ApiClientTest, NothingIsHeldBackUnlessTheServerSaysSo) {
  answer(200, "{}");
  const TimePoint before = clock_.now();
  for (int i = 0; i < 5000; ++i) ASSERT_TRUE(api_.create(kPods, "n", {{"kind", "Pod"}}).ok());
  EXPECT_TRUE(pauses_.empty()) << pauses_.size() << " pauses";
  EXPECT_EQ(clock_.now(), before);
  EXPECT_EQ(script_.requests.size(), 5000u);
}

TEST_F(ApiClientTest, AServerThatIsBusyIsAskedAgainWhenItSays) {
  answer(429, "", 2s);
  answer(503, "", 3s);
  answer(429, "");
  answer(200, R"({"a": 1})");
  ASSERT_TRUE(api_.get(kPods, "n", "a").ok());
  ASSERT_EQ(pauses_.size(), 3u);
  EXPECT_GE(pauses_[0], 2s);
  EXPECT_LE(pauses_[0], 3s);
  EXPECT_GE(pauses_[1], 3s);
  EXPECT_GE(pauses_[2], 800ms);
  EXPECT_LE(pauses_[2], 1200ms);
}

TEST_F(ApiClientTest, ButNotForEver) {
  answer(429, "", 1s);
  const absl::Status status = api_.get(kPods, "n", "a").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(retry_after(status), Duration(1s));
  EXPECT_EQ(script_.requests.size(), static_cast<std::size_t>(kMaxTries));
}

TEST_F(ApiClientTest, ALongRetryAfterIsTheCallersToWait) {
  answer(429, "", 600s);
  EXPECT_EQ(retry_after(api_.get(kPods, "n", "a").status()), Duration(600s));
  EXPECT_TRUE(pauses_.empty());
}

TEST_F(ApiClientTest, AListCanBeHadWithinATimeOrNotAtAll) {
  answer(429, "", 1s);
  EXPECT_FALSE(api_.list({kPods, "", ""}, 5, "", {}, 2s).ok());
  ASSERT_GE(script_.requests.size(), 1u);
  EXPECT_LE(script_.requests.size(), 2u) << "with jitter a second try may be too late";
  Duration left = 2s;
  for (std::size_t i = 0; i < script_.requests.size(); ++i) {
    EXPECT_EQ(script_.requests[i].timeout, left);
    EXPECT_EQ(script_.requests[i].total, left);
    if (i < pauses_.size()) left -= pauses_[i];
  }
  EXPECT_FALSE(api_.list({kPods, "", ""}, 5, "", {}).ok());
  EXPECT_EQ(script_.requests.back().total > kCallLimit, true) << "bytes may take their time";
}

TEST_F(ApiClientTest, AllTriesTogetherKeepTheLimit) {
  ApiClient hurried(
      script_, clock_, 1, {},
      [this](Duration time, std::stop_token) {
        clock_.advance(time);
        return true;
      },
      5s);
  answer(429, "", 2s);
  answer(200, "{}");
  ASSERT_TRUE(hurried.get(kPods, "n", "a").ok());
  ASSERT_EQ(script_.requests.size(), 2u);
  EXPECT_EQ(script_.requests[0].timeout, 5s);
  EXPECT_LE(script_.requests[1].timeout, 3s) << "the pause was a part of it";
  ASSERT_TRUE(hurried.create(kPods, "n", Json::object()).ok());
  EXPECT_EQ(script_.requests.back().timeout, 5s);
  ASSERT_TRUE(api_.get(kPods, "n", "a").ok());
  EXPECT_EQ(script_.requests.back().timeout, kCallLimit);
}

TEST_F(ApiClientTest, OtherErrorsAreNotRepeated) {
  for (const int status : {400, 401, 403, 404, 409, 410, 422, 500, 503}) {
    script_.answers.clear();
    script_.requests.clear();
    answer(status, "");
    EXPECT_FALSE(api_.create(kPods, "n", Json::object()).ok());
    EXPECT_EQ(script_.requests.size(), 1u) << status;
  }
}

TEST_F(ApiClientTest, StopEndsTheWait) {
  answer(429, "", 1s);
  stop_.request_stop();
  EXPECT_EQ(api_.get(kPods, "n", "a").status().code(), absl::StatusCode::kCancelled);
}

TEST_F(ApiClientTest, AListComesInPages) {
  FakeApiServer server;
  ApiClient api(server, clock_, 1);
  for (int i = 0; i < 5; ++i) {
    server.create("pods", i < 4 ? "n" : "m",
                  {{"metadata", {{"name", str_cat("p", i)}, {"labels", {{"a/b", i == 0 ? "x" : "y"}}}}}});
  }
  const auto first = api.list({kPods, "n", "a/b=y"}, 2, "", {});
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(first->items.size(), 2u);
  const auto second = api.list({kPods, "n", "a/b=y"}, 2, first->continue_token, {});
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_EQ(second->items.size(), 1u);
  EXPECT_EQ(second->continue_token, "");
  EXPECT_EQ(second->resource_version, first->resource_version);
  EXPECT_EQ(text_at(second->items[0], {"metadata", "name"}), "p3");
  EXPECT_EQ(api.list({kPods, "", ""}, 9, "", {})->items.size(), 5u);
  server.compact();
  EXPECT_TRUE(absl::IsOutOfRange(api.list({kPods, "n", ""}, 2, first->continue_token, {}).status()));
}

TEST_F(ApiClientTest, APageHasATimeForAllOfIt) {
  answer(200, R"({"items": []})");
  ASSERT_TRUE(api_.list({kPods, "", ""}, 5, "", {}).ok());
  EXPECT_EQ(script_.requests.back().timeout, kCallLimit);
  EXPECT_GT(script_.requests.back().total, kCallLimit);
  ASSERT_TRUE(api_.watch({kPods, "", ""}, "1", 5min, [](std::string_view) { return true; }, {}).ok());
  EXPECT_EQ(script_.requests.back().total, Duration::zero()) << "a watch has no end";
}

TEST_F(ApiClientTest, AnEmptyListMayBeNull) {
  answer(200, R"({"metadata": {"resourceVersion": "5"}, "items": null})");
  const auto page = api_.list({kPods, "", ""}, 5, "", {});
  ASSERT_TRUE(page.ok()) << page.status();
  EXPECT_TRUE(page->items.empty());
  EXPECT_EQ(page->resource_version, "5");
}

TEST_F(ApiClientTest, APageThatIsTooLargeIsRefused) {
  answer(200, std::string(kMaxListBytes + 1, ' '));
  EXPECT_EQ(api_.list({kPods, "", ""}, 5, "", {}).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(ApiClientTest, AWatchAsksForBookmarksAndAnEnd) {
  answer(200, "bytes");
  std::string seen;
  const auto on_bytes = [&](std::string_view bytes) {
    seen += bytes;
    return true;
  };
  EXPECT_TRUE(api_.watch({kPods, "", "x"}, "17", 90s, on_bytes, {}).ok());
  EXPECT_EQ(seen, "bytes");
  EXPECT_EQ(script_.requests.back().path,
            "/api/v1/"
            "pods?watch=true&allowWatchBookmarks=true&resourceVersion=17&timeoutSeconds=90&labelSelector=x");
  script_.answers.clear();
  answer(410, R"({"kind": "Status", "reason": "Expired", "message": "too old"})");
  EXPECT_TRUE(absl::IsOutOfRange(api_.watch({kPods, "", ""}, "17", 90s, on_bytes, {})));
}

}  // namespace
}  // namespace paceline::kube

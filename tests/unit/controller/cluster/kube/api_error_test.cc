#include "controller/cluster/kube/api_error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/retry_after.h"
#include "base/text.h"

namespace paceline::kube {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

Response response(int code, const std::string& reason, const std::string& message) {
  const Json json = {{"kind", "Status"}, {"code", code}, {"reason", reason}, {"message", message}};
  return {code, json.dump(), std::nullopt, "application/json"};
}

TEST(ApiErrorTest, EveryCodeHasItsMeaning) {
  const struct {
    int status;
    const char* reason;
    absl::StatusCode code;
  } kCases[] = {
      {400, "BadRequest", absl::StatusCode::kInvalidArgument},
      {401, "Unauthorized", absl::StatusCode::kUnauthenticated},
      {403, "Forbidden", absl::StatusCode::kPermissionDenied},
      {404, "NotFound", absl::StatusCode::kNotFound},
      {405, "MethodNotAllowed", absl::StatusCode::kUnimplemented},
      {409, "AlreadyExists", absl::StatusCode::kAlreadyExists},
      {409, "Conflict", absl::StatusCode::kAborted},
      {410, "Expired", absl::StatusCode::kOutOfRange},
      {410, "Gone", absl::StatusCode::kOutOfRange},
      {413, "RequestEntityTooLarge", absl::StatusCode::kInvalidArgument},
      {415, "UnsupportedMediaType", absl::StatusCode::kUnimplemented},
      {422, "Invalid", absl::StatusCode::kInvalidArgument},
      {429, "TooManyRequests", absl::StatusCode::kUnavailable},
      {500, "InternalError", absl::StatusCode::kUnavailable},
      {503, "ServiceUnavailable", absl::StatusCode::kUnavailable},
      {504, "Timeout", absl::StatusCode::kUnavailable},
      {302, "", absl::StatusCode::kUnknown},
      {418, "", absl::StatusCode::kUnknown},
  };
  for (const auto& each : kCases) {
    const absl::Status status = error_of(response(each.status, each.reason, "the words"));
    EXPECT_EQ(status.code(), each.code) << each.status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("the words"));
    EXPECT_THAT(std::string(status.message()), HasSubstr(std::to_string(each.status)));
  }
}

TEST(ApiErrorTest, TheServersOwnWordsAreShown) {
  const std::string words =
      R"(pods "a" is forbidden: exceeded quota: small, requested: pods=1, used: pods=4)";
  EXPECT_EQ(std::string(error_of(response(403, "Forbidden", words)).message()), "403 Forbidden: " + words);
}

TEST(ApiErrorTest, WordsAreBoundedAndHarmless) {
  const std::string message(error_of(response(500, "X", "\x1b[31m" + std::string(9000, 'x'))).message());
  EXPECT_LT(message.size(), kMaxErrorBytes + 100);
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
  const std::string html(error_of({502, "<html>\nbad gateway", std::nullopt, "text/html"}).message());
  EXPECT_EQ(html, "502: <html> bad gateway");
}

TEST(ApiErrorTest, RetryAfterTravelsAlong) {
  Response asked = response(429, "TooManyRequests", "slow down");
  EXPECT_EQ(retry_after(error_of(asked)), std::nullopt);
  asked.retry_after = 1500ms;
  EXPECT_EQ(retry_after(error_of(asked)), Duration(1500ms));
  const Json in_body = {{"kind", "Status"}, {"code", 429}, {"details", {{"retryAfterSeconds", 3}}}};
  EXPECT_EQ(retry_after(error_of({429, in_body.dump(), std::nullopt, ""})), Duration(3s));
  EXPECT_EQ(retry_after(absl::OkStatus()), std::nullopt);
}

TEST(ApiErrorTest, TheStatusObjectTravelsAlong) {
  const auto object = status_object_of(error_of(response(404, "NotFound", "x not found"), "GET /x"));
  ASSERT_TRUE(object);
  EXPECT_EQ(text_at(*object, {"reason"}), "NotFound");
  EXPECT_FALSE(status_object_of(error_of({404, "404 page not found", std::nullopt, "text/plain"})));
  EXPECT_FALSE(status_object_of(error_of(response(422, "Invalid", std::string(kMaxKeptStatusBytes, 'x')))));
  EXPECT_FALSE(status_object_of(absl::NotFoundError("ours")));
}

TEST(ApiErrorTest, OfAnErrorEvent) {
  EXPECT_TRUE(absl::IsOutOfRange(error_of(Json{{"kind", "Status"}, {"code", 410}, {"message", "too old"}})));
  EXPECT_EQ(error_of(Json::object()).code(), absl::StatusCode::kUnknown);
  EXPECT_EQ(error_of(Json{{"code", "410"}}).code(), absl::StatusCode::kUnknown);
}

}  // namespace
}  // namespace paceline::kube

#include "controller/dashboard/answers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "controller/cluster/kube/json.h"

namespace paceline::dashboard {
namespace {

using kube::Json;

TEST(AnswersTest, StatusesBecomeCodes) {
  struct Case {
    absl::Status status;
    int http;
    const char* code;
  };
  for (const Case& c : {Case{absl::NotFoundError("x"), 404, "NotFound"},
                        {absl::InvalidArgumentError("x"), 400, "BadRequest"},
                        {absl::FailedPreconditionError("x"), 409, "Conflict"},
                        {absl::PermissionDeniedError("x"), 403, "Forbidden"},
                        {absl::ResourceExhaustedError("x"), 429, "TooMany"},
                        {absl::UnavailableError("x"), 503, "Unavailable"},
                        {absl::DataLossError("x"), 500, "Internal"}}) {
    const web::HttpAnswer answer = error_answer(c.status);
    EXPECT_EQ(answer.status, c.http);
    EXPECT_EQ(Json::parse(answer.body), (Json{{"error", {{"code", c.code}, {"message", "x"}}}}));
  }
}

TEST(AnswersTest, MessagesMayHaveAnyBytes) {
  const web::HttpAnswer answer = error_answer(absl::NotFoundError("\xff\"<script>"));
  EXPECT_TRUE(Json::accept(answer.body));
}

TEST(AnswersTest, BrowsersAreToldWhatTheyMayDo) {
  web::HttpAnswer answer;
  add_security_headers(answer);
  const auto value = [&](std::string_view name) {
    const auto found = std::ranges::find(answer.headers, name, [](const auto& each) { return each.first; });
    return found == answer.headers.end() ? "" : found->second;
  };
  EXPECT_EQ(
      value("Content-Security-Policy"),
      "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
      "form-action 'none'; frame-ancestors 'none'; base-uri 'none'");
  EXPECT_EQ(value("X-Content-Type-Options"), "nosniff");
  EXPECT_EQ(value("Referrer-Policy"), "no-referrer");
}

}  // namespace
}  // namespace paceline::dashboard

#include "controller/jobs/api_error_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::jobs {
namespace {

using ::testing::HasSubstr;

TEST(ApiErrorTextTest, CodesStayAndTextsSayWhatHelps) {
  const Asked asked{.what = "list the jobs of namespace a", .verb = "list", .ns = "a"};
  for (const auto code : {absl::StatusCode::kPermissionDenied, absl::StatusCode::kNotFound,
                          absl::StatusCode::kUnavailable, absl::StatusCode::kUnauthenticated})
    EXPECT_EQ(api_error_text(absl::Status(code, "no"), asked, "here").code(), code);
  EXPECT_THAT(api_error_text(absl::PermissionDeniedError("no"), asked, "here").message(),
              HasSubstr("list trainingjobs.paceline.dev"));
  EXPECT_TRUE(api_error_text(absl::OkStatus(), asked, "here").ok());
}

}  // namespace
}  // namespace paceline::jobs

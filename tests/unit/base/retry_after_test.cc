#include "base/retry_after.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

using namespace std::chrono_literals;

TEST(RetryAfterTest, TravelsWithTheStatus) {
  absl::Status status = absl::UnavailableError("busy");
  EXPECT_EQ(retry_after(status), std::nullopt);
  EXPECT_EQ(retry_after(absl::OkStatus()), std::nullopt);
  set_retry_after(status, 90s);
  status = with_context_and_time(with_context_and_time(status, "job x"), "again");
  EXPECT_EQ(status, [] {
    absl::Status expected = absl::UnavailableError("again: job x: busy");
    set_retry_after(expected, 90s);
    return expected;
  }());
  EXPECT_EQ(retry_after(status), Duration(90s));
  EXPECT_EQ(with_context_and_time(absl::NotFoundError("gone"), "x"), absl::NotFoundError("x: gone"));
  EXPECT_TRUE(with_context_and_time(absl::OkStatus(), "x").ok());
  set_retry_after(status, 1500us);
  EXPECT_EQ(retry_after(status), Duration(1ms));
}

}  // namespace
}  // namespace paceline

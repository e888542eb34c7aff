#include "base/status.h"

#include <gtest/gtest.h>

#include "base/check.h"
#include "base/text.h"

namespace paceline {
namespace {

absl::StatusOr<int> half(int value) {
  if (value % 2 != 0) return absl::InvalidArgumentError("odd");
  return value / 2;
}

absl::StatusOr<int> quarter(int value) {
  PL_ASSIGN_OR_RETURN(const int first, half(value));
  PL_ASSIGN_OR_RETURN(const int second, half(first));
  return second;
}

TEST(StatusTest, MacrosReturnTheFirstError) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(StatusTest, ContextKeepsTheCode) {
  const absl::Status status = with_context(absl::NotFoundError("gone"), std::string_view("job x"));
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "job x: gone");
  EXPECT_TRUE(with_context(absl::OkStatus(), "x").ok());
}

TEST(StatusTest, StrCatTakesEveryKindOfText) {
  EXPECT_EQ(str_cat("a", std::string("b"), std::string_view("c"), 4, absl::NotFoundError("e").message()),
            "abc4e");
}

TEST(CheckDeathTest, NamesTheCondition) {
  EXPECT_DEATH(PL_CHECK(1 > 2, "one is not more than two"), "1 > 2: one is not");
}

}  // namespace
}  // namespace paceline

#include "controller/api/preflight.h"

#include <gtest/gtest.h>

namespace paceline::api {
namespace {

TEST(PreflightTest, EachEnumeratorHasItsName) {
  EXPECT_STREQ(name(PreflightOutcome::kPassed), "Passed");
  EXPECT_STREQ(name(PreflightOutcome::kExcluded), "Excluded");
  EXPECT_STREQ(name(PreflightOutcome::kReported), "Reported");
  EXPECT_STREQ(name(PreflightOutcome::kFailed), "Failed");
  EXPECT_STREQ(name(PreflightPart::kCompute), "Compute");
  EXPECT_STREQ(name(PreflightPart::kLink), "Link");
}

}  // namespace
}  // namespace paceline::api

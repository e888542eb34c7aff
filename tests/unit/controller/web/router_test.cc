#include "controller/web/router.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace paceline::web {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

class RouterTest : public ::testing::Test {
 protected:
  RouterTest() {
    jobs_ = router_.add("GET", "/jobs");
    job_ = router_.add("GET", "/jobs/{ns}/{name}");
    remove_ = router_.add("DELETE", "/jobs/{ns}/{name}");
  }
  Router router_;
  std::size_t jobs_ = 0, job_ = 0, remove_ = 0;
};

TEST_F(RouterTest, PartsInBracesBecomeParameters) {
  const Router::Match match = router_.match("GET", "/jobs/team-a/digits");
  EXPECT_EQ(match.route, job_);
  EXPECT_THAT(match.parameters, ElementsAre(Pair("name", "digits"), Pair("ns", "team-a")));
}

TEST_F(RouterTest, MethodsHaveRoutesOfTheirOwn) {
  EXPECT_EQ(router_.match("DELETE", "/jobs/a/b").route, remove_);
  EXPECT_EQ(router_.match("HEAD", "/jobs").route, jobs_);
  const Router::Match match = router_.match("PUT", "/jobs/a/b");
  EXPECT_FALSE(match.route);
  EXPECT_THAT(match.allowed, ElementsAre("GET", "DELETE"));
}

TEST_F(RouterTest, OtherPathsHaveNone) {
  for (const char* path : {"", "/", "/job", "/jobs/", "/jobs/a", "/jobs//b", "/jobs/a/", "/jobs/a/b/c"}) {
    const Router::Match match = router_.match("GET", path);
    EXPECT_FALSE(match.route) << path;
    EXPECT_THAT(match.allowed, IsEmpty()) << path;
  }
}

}  // namespace
}  // namespace paceline::web

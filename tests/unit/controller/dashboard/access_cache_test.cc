#include "controller/dashboard/access_cache.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace paceline::dashboard {
namespace {

constexpr TimePoint kStart{};
constexpr Duration kShort = std::chrono::milliseconds(1);

TEST(AccessCacheTest, AnswersCountForSeconds) {
  AccessCache cache;
  EXPECT_FALSE(cache.may("r", kStart));
  cache.put_may("r", true, kStart);
  EXPECT_EQ(cache.may("r", kStart + AccessCache::kKept - kShort), true);
  EXPECT_FALSE(cache.may("r", kStart + AccessCache::kKept));
  cache.put_may("r", false, kStart);
  EXPECT_EQ(cache.may("r", kStart), false);
  cache.put_who("t", Somebody{.user = "ada"}, kStart);
  ASSERT_TRUE(cache.who("t", kStart));
  EXPECT_EQ((*cache.who("t", kStart))->user, "ada");
  EXPECT_FALSE(cache.who("t", kStart + AccessCache::kKept));
  ASSERT_NE(cache.was("t"), nullptr);
  EXPECT_EQ(cache.was("t")->user, "ada");
  cache.put_who("x", std::nullopt, kStart);
  ASSERT_TRUE(cache.who("x", kStart));
  EXPECT_FALSE(cache.who("x", kStart)->has_value());
  EXPECT_EQ(cache.was("x"), nullptr);
}

TEST(AccessCacheTest, TheOldestGoWhereThereAreTooMany) {
  AccessCache cache;
  for (std::size_t i = 0; i <= AccessCache::kMost; ++i) cache.put_may(str_cat(i), true, kStart);
  EXPECT_FALSE(cache.may("0", kStart));
  EXPECT_TRUE(cache.may("1", kStart));
  EXPECT_TRUE(cache.may(str_cat(AccessCache::kMost), kStart));
}

TEST(RequestLimitsTest, EachUserHasABurstAndThenARate) {
  RequestLimits limits(2, 3);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limits.take("ada", kStart));
  EXPECT_FALSE(limits.take("ada", kStart));
  EXPECT_TRUE(limits.take("bob", kStart));
  EXPECT_TRUE(limits.take("ada", kStart + std::chrono::milliseconds(500)));
  EXPECT_FALSE(limits.take("ada", kStart + std::chrono::milliseconds(500)));
  const TimePoint later = kStart + std::chrono::hours(1);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(limits.take("ada", later));
  EXPECT_FALSE(limits.take("ada", later));
}

TEST(RequestLimitsTest, BucketsAreBounded) {
  RequestLimits limits(1, 1);
  for (std::size_t i = 0; i < 2 * RequestLimits::kMost; ++i) EXPECT_TRUE(limits.take(str_cat(i), kStart));
  EXPECT_EQ(limits.size(), RequestLimits::kMost);
  EXPECT_FALSE(limits.take(str_cat(2 * RequestLimits::kMost - 1), kStart)) << "the newest are kept";
}

}  // namespace
}  // namespace paceline::dashboard

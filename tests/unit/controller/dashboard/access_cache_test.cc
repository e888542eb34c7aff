#include "controller/dashboard/access_cache.h"

#include <gtest/gtest.h>

#include <span>

#include "base/hex.h"
#include "base/text.h"

namespace paceline::dashboard {
namespace {

constexpr TimePoint kStart{};
constexpr Duration kShort = std::chrono::milliseconds(1);

TEST(AccessCacheTest, DigestStandsForATokenOfAnyLength) {
  const Digest sum = digest("abc");
  EXPECT_EQ(hex(std::as_bytes(std::span(sum))),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::string token(16 << 10, 'x');
  EXPECT_NE(digest(token), digest(token + "x"));
}

TEST(AccessCacheTest, AnswersCountForSeconds) {
  AccessCache cache;
  EXPECT_FALSE(cache.may(digest("r"), kStart));
  cache.put_may(digest("r"), true, kStart);
  EXPECT_EQ(cache.may(digest("r"), kStart + AccessCache::kKept - kShort), true);
  EXPECT_FALSE(cache.may(digest("r"), kStart + AccessCache::kKept));
  cache.put_may(digest("r"), false, kStart);
  EXPECT_EQ(cache.may(digest("r"), kStart), false);
  cache.put_who(digest("t"), Somebody{.user = "ada"}, kStart);
  ASSERT_TRUE(cache.who(digest("t"), kStart));
  EXPECT_EQ((*cache.who(digest("t"), kStart))->user, "ada");
  EXPECT_FALSE(cache.who(digest("t"), kStart + AccessCache::kKept));
  ASSERT_NE(cache.was(digest("t")), nullptr);
  EXPECT_EQ(cache.was(digest("t"))->user, "ada");
  cache.put_who(digest("x"), std::nullopt, kStart);
  ASSERT_TRUE(cache.who(digest("x"), kStart));
  EXPECT_FALSE(cache.who(digest("x"), kStart)->has_value());
  EXPECT_EQ(cache.was(digest("x")), nullptr);
}

TEST(AccessCacheTest, TheOldestGoWhereThereAreTooMany) {
  AccessCache cache;
  for (std::size_t i = 0; i <= AccessCache::kMost; ++i) cache.put_may(digest(str_cat(i)), true, kStart);
  EXPECT_FALSE(cache.may(digest("0"), kStart));
  EXPECT_TRUE(cache.may(digest("1"), kStart));
  EXPECT_TRUE(cache.may(digest(str_cat(AccessCache::kMost)), kStart));
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

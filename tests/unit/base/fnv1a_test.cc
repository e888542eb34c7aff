#include "base/fnv1a.h"

#include <gtest/gtest.h>

namespace paceline {
namespace {

TEST(Fnv1a, PublishedValues) {
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325U);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8U);
  static_assert(fnv1a("a") == 0xaf63dc4c8601ec8cU);
}

TEST(Fnv1a, BytesBeyondAsciiAreBytes) {
  Fnv1a hash;
  hash.add(0xffU);
  EXPECT_EQ(fnv1a("\xff"), hash.value());
  EXPECT_EQ(hash.value(), (0xcbf29ce484222325U ^ 0xffU) * 0x100000001b3U);
}

TEST(Fnv1a, PieceByPieceIsTheSameAndASeedIsNot) {
  Fnv1a hash(7);
  hash.add("foo");
  hash.add(static_cast<unsigned char>('b'));
  hash.add("ar");
  EXPECT_EQ(hash.value(), fnv1a("foobar", 7));
  EXPECT_NE(hash.value(), fnv1a("foobar"));
}

}  // namespace
}  // namespace paceline

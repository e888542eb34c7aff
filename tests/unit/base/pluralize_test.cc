#include "base/pluralize.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace paceline {
namespace {

TEST(Counted, OnlyOneIsOne) {
  EXPECT_EQ(pluralize(1, "pod", "pods"), "1 pod");
  EXPECT_EQ(pluralize(std::size_t{0}, "pod", "pods"), "0 pods");
  EXPECT_EQ(pluralize(std::int64_t{2}, "entry", "entries"), "2 entries");
  EXPECT_EQ(pluralize(-1, "step", "steps"), "-1 steps");
}

}  // namespace
}  // namespace paceline

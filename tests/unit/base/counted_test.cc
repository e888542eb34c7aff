#include "base/counted.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

namespace paceline {
namespace {

TEST(Counted, OnlyOneIsOne) {
  EXPECT_EQ(counted(1, "pod", "pods"), "1 pod");
  EXPECT_EQ(counted(std::size_t{0}, "pod", "pods"), "0 pods");
  EXPECT_EQ(counted(std::int64_t{2}, "entry", "entries"), "2 entries");
  EXPECT_EQ(counted(-1, "step", "steps"), "-1 steps");
}

}  // namespace
}  // namespace paceline

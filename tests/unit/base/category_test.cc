#include "base/category.h"

#include <gtest/gtest.h>

#include "base/rng.h"

namespace paceline {
namespace {

TEST(CategoryTest, AnIdSaysWhatItIsOf) {
  for (const std::int64_t field : {0, 1, 7, 65'535}) {
    for (const std::int32_t value : {0, 1, 42, 2'147'483'647}) {
      const Category category{field, value};
      EXPECT_EQ(category_of(category_id(category)), category) << field << " " << value;
    }
  }
  // Golden: ids stand in checkpoints.
  EXPECT_EQ(category_id({2, 17}), mix64((std::uint64_t{3} << 32) + 17));
}

TEST(CategoryTest, OtherIdsAreOfNoValue) {
  EXPECT_FALSE(category_of(mix64(17)).has_value()) << "there is no field before the first";
  EXPECT_FALSE(category_of(category_id({65'536, 0})).has_value());
  EXPECT_FALSE(category_of(mix64((std::uint64_t{1} << 32) + (std::uint64_t{1} << 31))).has_value());
}

}  // namespace
}  // namespace paceline

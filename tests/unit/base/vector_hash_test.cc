#include "base/vector_hash.h"

#include <gtest/gtest.h>

#include <bit>
#include <numeric>
#include <vector>

#include "base/rng.h"

namespace paceline {
namespace {

TEST(VectorHash, SeesEverySingleBitAndTheOrder) {
  for (const std::size_t count : {1u, 3u, 8u, 31u, 64u, 2047u, 2048u, 2050u}) {
    std::vector<float> vector(count);
    Rng rng(count, 1);
    for (float& v : vector) v = rng.normal();
    const std::uint64_t whole = vector_hash(vector);
    EXPECT_EQ(whole, vector_hash(vector));
    const std::size_t stride = count < 100 ? 1 : 97;
    for (std::size_t i = count - 1; i < count; i -= stride) {
      const float before = vector[i];
      for (int bit = 0; bit < 32; ++bit) {
        vector[i] = std::bit_cast<float>(std::bit_cast<std::uint32_t>(before) ^ (1u << bit));
        ASSERT_NE(vector_hash(vector), whole);
      }
      vector[i] = before;
    }
    if (count > 1) {
      std::swap(vector.front(), vector.back());
      EXPECT_NE(vector_hash(vector), whole);
      std::swap(vector.front(), vector.back());
    }
    vector.push_back(0);
    EXPECT_NE(vector_hash(vector), whole);
  }
}

// Neither words of a lane, nor lanes, nor blocks may change places unseen.
TEST(VectorHash, EveryPlaceCounts) {
  std::vector<float> vector(3 * block_hash::kFloats);
  std::iota(vector.begin(), vector.end(), 1.0F);
  const std::uint64_t whole = vector_hash(vector);
  for (const std::size_t distance : {std::size_t{1}, std::size_t{2}, std::size_t{64}, block_hash::kFloats}) {
    for (const std::size_t at : {std::size_t{0}, std::size_t{7}, block_hash::kFloats + 70}) {
      std::swap(vector[at], vector[at + distance]);
      EXPECT_NE(vector_hash(vector), whole) << at << " and " << at + distance;
      std::swap(vector[at], vector[at + distance]);
    }
  }
}

// Written to models' files (docs/checkpoints.md); members of a job tell it to each other: it stays what it
// is.
TEST(VectorHash, IsWhatItWas) {
  std::vector<float> vector(5000);
  std::iota(vector.begin(), vector.end(), -2500.0F);
  EXPECT_EQ(vector_hash(vector), 2329143070524481213U);
  EXPECT_EQ(vector_hash({}), 0U);
}

}  // namespace
}  // namespace paceline

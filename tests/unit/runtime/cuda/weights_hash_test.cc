#include "runtime/cuda/weights_hash.h"

#include <gtest/gtest.h>

#include "base/vector_hash.h"
#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/unit/runtime/cuda/values.h"

namespace paceline::cuda {
namespace {

class WeightsHashTest : public GpuTest {};

TEST_F(WeightsHashTest, IsThatOfTheHost) {
  const auto hash = must(WeightsHash::load(context_));
  Rng rng(7, 0);
  for (const std::size_t n : {1U, 2U, 63U, 64U, 65U, 2047U, 2048U, 2049U, 40'003U}) {
    const auto weights = random_values<float>(rng, n);
    in_both_orders([&] {
      const auto on_gpu = upload(weights);
      const auto sums = array<std::uint64_t>(WeightsHash::parts(n));
      ASSERT_TRUE(hash.add(*stream_, on_gpu.data(), n, sums.data()).ok());
      EXPECT_EQ(WeightsHash::result(download(sums), n), vector_hash(weights)) << n << " weights";
    });
  }
}

TEST_F(WeightsHashTest, SumsAreBoundedHoweverManyWeights) {
  EXPECT_EQ(WeightsHash::parts(0), 1U);
  EXPECT_EQ(WeightsHash::parts(std::size_t{1} << 40), 1024U);
}

}  // namespace
}  // namespace paceline::cuda

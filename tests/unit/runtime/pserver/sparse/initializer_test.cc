#include "runtime/pserver/sparse/initializer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace paceline::pserver::sparse {
namespace {

std::vector<float> row(Initializer::Kind kind, double scale, std::uint64_t seed, RowId id,
                       std::size_t dim = 64) {
  std::vector<float> weights(dim, -7.0f);
  initialize_row({kind, scale}, seed, id, weights);
  return weights;
}

TEST(Initializer, IsAFunctionOfSeedAndRow) {
  for (const auto kind : {Initializer::Kind::kUniform, Initializer::Kind::kNormal}) {
    EXPECT_EQ(row(kind, 0.5, 3, 9), row(kind, 0.5, 3, 9));
    EXPECT_NE(row(kind, 0.5, 3, 9), row(kind, 0.5, 3, 10));
    EXPECT_NE(row(kind, 0.5, 3, 9), row(kind, 0.5, 4, 9));
  }
  EXPECT_EQ(row(Initializer::Kind::kZero, 0, 3, 9), std::vector<float>(64, 0.0f));
}

TEST(Initializer, HasTheMomentsItSays) {
  struct Case {
    Initializer::Kind kind;
    double deviation, most;
  };
  const Case cases[] = {{Initializer::Kind::kUniform, 0.5 / std::sqrt(3.0), 0.5},
                        {Initializer::Kind::kNormal, 0.5, 0.5 * 6}};
  for (const Case& each : cases) {
    for (const std::size_t dim : {std::size_t{1}, std::size_t{7}, std::size_t{64}}) {
      double sum = 0, squares = 0;
      constexpr int kFloats = 200'000;
      const int rows = kFloats / static_cast<int>(dim);
      for (int id = 0; id < rows; ++id) {
        for (const float w : row(each.kind, 0.5, 1, static_cast<RowId>(id), dim)) {
          ASSERT_TRUE(std::abs(w) <= each.most) << w;
          sum += w;
          squares += static_cast<double>(w) * w;
        }
      }
      const double n = rows * static_cast<double>(dim);
      EXPECT_NEAR(sum / n, 0, 5 * each.deviation / std::sqrt(n));
      EXPECT_NEAR(std::sqrt(squares / n), each.deviation, 0.01 * each.deviation);
    }
  }
}

}  // namespace
}  // namespace paceline::pserver::sparse

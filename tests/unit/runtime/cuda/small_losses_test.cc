#include "runtime/cuda/small_losses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/unit/runtime/cuda/values.h"

namespace paceline::cuda {
namespace {

using ::testing::ElementsAre;

template <typename T>
class SmallLossesTest : public KernelsTest<SmallLosses> {
 protected:
  // The result, with the scores and the gradient.
  struct Sigmoid {
    std::vector<double> result;
    std::vector<float> scores;
    std::vector<T> gradient;
  };
  Sigmoid sigmoid(const std::vector<T>& logits, const std::vector<std::int32_t>& labels, bool in_place) {
    const auto z = upload(logits), dz = array<T>(logits.size());
    const auto l = upload(labels);
    const auto scores = array<float>(logits.size());
    const auto result = array<double>(3);
    const auto& gradient = in_place ? z : dz;
    EXPECT_TRUE(kernels_
                    ->sigmoid_cross_entropy(*stream_, kTypeOf<T>,
                                            {.logits = z.data(),
                                             .labels = l.data(),
                                             .scores = scores.data(),
                                             .gradient = gradient.data(),
                                             .result = result.data(),
                                             .rows = static_cast<std::uint32_t>(logits.size())})
                    .ok());
    return {download(result), download(scores), download(gradient)};
  }

  Rng rng_{23, 0};
};

using Types = ::testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(SmallLossesTest, Types);

TYPED_TEST(SmallLossesTest, SigmoidCrossEntropyAndItsGradient) {
  using T = TypeParam;
  this->in_both_orders([&] {
    for (const std::size_t rows : {1, 2, 511, 1300}) {
      auto logits = random_values<T>(this->rng_, rows, 4);
      if (rows > 1) logits[1] = T(-200);  // e^200 is no float
      std::vector<std::int32_t> labels;
      for (std::size_t i = 0; i < rows; ++i) labels.push_back(static_cast<std::int32_t>(this->rng_.below(2)));
      double loss = 0, right = 0;
      Doubles gradient;
      for (std::size_t i = 0; i < rows; ++i) {
        const double z = static_cast<float>(logits[i]);
        loss += std::log1p(std::exp(-std::abs(z))) + std::max(z, 0.0) - (labels[i] == 1 ? z : 0);
        right += (z > 0) == (labels[i] == 1);
        gradient.push_back(1 / (1 + std::exp(-z)) - labels[i]);
      }
      for (const bool in_place : {false, true}) {
        const auto got = this->sigmoid(logits, labels, in_place);
        EXPECT_NEAR(got.result[0], loss, 1e-12 * loss);
        EXPECT_EQ(got.result[1], right);
        EXPECT_EQ(got.result[2], static_cast<double>(rows));
        EXPECT_EQ(doubles(got.scores), doubles(logits));
        expect_near(got.gradient, gradient, 1e-6);
      }
    }
  });
}

TYPED_TEST(SmallLossesTest, NanAndOtherLabelsReachTheLoss) {
  using T = TypeParam;
  const T nan(std::numeric_limits<float>::quiet_NaN());
  EXPECT_TRUE(std::isnan(this->sigmoid({T(1), nan}, {1, 0}, false).result[0]));
  EXPECT_TRUE(std::isnan(this->sigmoid({T(1), T(2)}, {1, 2}, false).result[0]));
  EXPECT_TRUE(std::isnan(this->sigmoid({T(1), T(2)}, {-1, 1}, false).result[0]));
}

TYPED_TEST(SmallLossesTest, SquaredErrorAndItsGradient) {
  using T = TypeParam;
  this->in_both_orders([&] {
    for (const std::size_t n : {1, 7, 4096, 10'001}) {
      const auto x = random_values<T>(this->rng_, n), y = random_values<T>(this->rng_, n);
      double sum = 0;
      Doubles difference;
      for (std::size_t i = 0; i < n; ++i) {
        const double d = static_cast<double>(static_cast<float>(x[i])) - static_cast<float>(y[i]);
        sum += d * d;
        difference.push_back(-0.75 * d);
      }
      const auto a = this->upload(x), b = this->upload(y), dx = this->template array<T>(n);
      const auto partials = this->template array<double>(SmallLosses::parts(n));
      const auto result = this->template array<double>(3);
      ASSERT_TRUE(this->kernels_
                      ->squared_error(*this->stream_, kTypeOf<T>, a.data(), b.data(), n, 4, partials.data(),
                                      result.data())
                      .ok());
      ASSERT_TRUE(
          this->kernels_
              ->scaled_difference(*this->stream_, kTypeOf<T>,
                                  {.x = a.data(), .y = b.data(), .dx = dx.data(), .factor = -0.75F, .n = n})
              .ok());
      const auto got = this->download(result);
      EXPECT_NEAR(got[0], sum / 4, 1e-12 * sum);
      EXPECT_THAT(std::vector<double>(got.begin() + 1, got.end()), ElementsAre(0, 0));
      expect_near(this->download(dx), difference, 1e-6);
    }
  });
}

}  // namespace
}  // namespace paceline::cuda

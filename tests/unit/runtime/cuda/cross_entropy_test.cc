#include "runtime/cuda/cross_entropy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/unit/runtime/cuda/values.h"

namespace paceline::cuda {
namespace {

template <typename T>
class CrossEntropyTest : public KernelsTest<CrossEntropy> {
 protected:
  struct Result {
    std::vector<T> logits;  // afterwards
    std::vector<float> losses;
    std::vector<std::int32_t> hits;
    std::vector<double> sums;
  };
  Result run(bool gradient, const std::vector<T>& logits, const std::vector<std::int32_t>& labels,
             std::size_t classes, std::size_t stride, float scale, std::uint32_t rows_per_sample = 1) {
    const std::size_t rows = labels.size();
    const auto x = upload(logits);
    const auto l = upload(labels);
    const auto losses = array<float>(rows);
    const auto hits = array<std::int32_t>(rows);
    const auto sums = array<double>(3);
    const CrossEntropyParams params{.logits = x.data(),
                                    .labels = l.data(),
                                    .losses = losses.data(),
                                    .hits = hits.data(),
                                    .scale = scale,
                                    .rows = static_cast<std::uint32_t>(rows),
                                    .classes = static_cast<std::uint32_t>(classes),
                                    .stride = static_cast<std::uint32_t>(stride)};
    EXPECT_TRUE((gradient ? kernels_->gradient(*stream_, kTypeOf<T>, params)
                          : kernels_->forward(*stream_, kTypeOf<T>, params))
                    .ok());
    EXPECT_TRUE(kernels_
                    ->sum(*stream_, {.losses = losses.data(),
                                     .hits = hits.data(),
                                     .result = sums.data(),
                                     .rows = params.rows,
                                     .rows_per_sample = rows_per_sample})
                    .ok());
    return {download(x), download(losses), download(hits), download(sums)};
  }

  // With neither losses nor hits.
  std::vector<T> gradient_alone(const std::vector<T>& logits, const std::vector<std::int32_t>& labels,
                                std::size_t classes, std::size_t stride, float scale) {
    const auto x = upload(logits);
    const auto l = upload(labels);
    EXPECT_TRUE(kernels_
                    ->gradient(*stream_, kTypeOf<T>,
                               {.logits = x.data(),
                                .labels = l.data(),
                                .losses = nullptr,
                                .hits = nullptr,
                                .scale = scale,
                                .rows = static_cast<std::uint32_t>(labels.size()),
                                .classes = static_cast<std::uint32_t>(classes),
                                .stride = static_cast<std::uint32_t>(stride)})
                    .ok());
    return download(x);
  }

  Rng rng_{23, 0};
};

using Types = ::testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(CrossEntropyTest, Types);

TYPED_TEST(CrossEntropyTest, LossesGradientsAndTheirSums) {
  using T = TypeParam;
  struct Shape {
    std::size_t rows, classes, stride;
  };
  // The last columns of a row only fill it up; rows that begin inside an access; rows of one access for many
  // threads, and of many for each.
  for (const Shape& shape :
       {Shape{1, 1, 1}, Shape{3, 5, 5}, Shape{4, 10, 16}, Shape{9, 64, 64}, Shape{9, 67, 67},
        Shape{5, 257, 264}, Shape{2, 5003, 5008}, Shape{9, 1031, 1031}, Shape{2, 16411, 16411}}) {
    const std::size_t rows = shape.rows, classes = shape.classes, stride = shape.stride;
    SCOPED_TRACE(::testing::Message() << rows << " x " << classes << " of " << stride);
    const auto logits = random_values<T>(this->rng_, rows * stride, 4);
    std::vector<std::int32_t> labels(rows);
    for (auto& label : labels) label = static_cast<std::int32_t>(this->rng_.below(classes));
    constexpr float kScale = 0.25F;
    Doubles losses, gradient(rows * stride);
    double loss = 0, correct = 0;
    for (std::size_t r = 0; r < rows; ++r) {
      const Doubles all = doubles(logits),
                    row(all.begin() + static_cast<std::ptrdiff_t>(r * stride),
                        all.begin() + static_cast<std::ptrdiff_t>(r * stride + classes));
      const auto label = static_cast<std::size_t>(labels[r]);
      double mass = 0;
      for (const double x : row) mass += std::exp(x);
      for (std::size_t c = 0; c < classes; ++c)
        gradient[r * stride + c] = kScale * (std::exp(row[c]) / mass - (c == label ? 1 : 0));
      losses.push_back(std::log(mass) - row[label]);
      loss += losses.back() / 2;
      correct += std::max_element(row.begin(), row.end()) == row.begin() + labels[r];
    }
    std::vector<float> first;
    this->in_both_orders([&] {
      const auto both = this->run(true, logits, labels, classes, stride, kScale, 2);
      const auto only = this->run(false, logits, labels, classes, stride, kScale, 2);
      expect_near(both.logits, gradient, 1e-6);
      EXPECT_TRUE(same_bits(only.logits, logits));
      expect_near(both.losses, losses, 2e-6);
      EXPECT_TRUE(same_bits(both.losses, only.losses));
      EXPECT_TRUE(same_bits(this->gradient_alone(logits, labels, classes, stride, kScale), both.logits));
      EXPECT_NEAR(both.sums[0], loss, 2e-6 * std::max(1.0, loss));
      EXPECT_EQ(both.sums[1], correct);
      EXPECT_EQ(both.sums[2], static_cast<double>(rows));
      EXPECT_TRUE(first.empty() || same_bits(first, both.losses));
      first = both.losses;
    });
  }
}

TYPED_TEST(CrossEntropyTest, HardCases) {
  using T = TypeParam;
  struct Case {
    const char* what;
    std::vector<float> logits;
    std::int32_t label;
    double loss;  // NaN: must be NaN
    int hit;
  };
  const Case cases[] = {
      {"far apart", {0, 1000, -1000}, 1, 0, 1},
      {"certain of the wrong one", {0, 80, 0}, 0, 80, 0},
      {"equal: the first of them", {2, 2, 2}, 0, std::log(3.0), 1},
      {"equal: not the second", {2, 2, 2}, 1, std::log(3.0), 0},
      {"huge", {1e30F, 1e30F}, 0, std::log(2.0), 1},
      {"one without hope", {-kInfinity, 1, 1}, 1, std::log(2.0), 1},
      {"a NaN elsewhere", {5, kNan, 0}, 0, kNan, 0},
      {"the label's NaN", {kNan, 1, 0}, 0, kNan, 0},
      {"infinite", {kInfinity, 1, 0}, 0, kNan, 0},
      {"none has hope", {-kInfinity, -kInfinity}, 0, kNan, 0},
      {"no class", {1, 2, 3}, 3, kNan, 0},
      {"no class below", {1, 2, 3}, -1, kNan, 0},
  };
  for (const Case& c : cases) {
    for (const std::size_t stride : {c.logits.size(), std::size_t{8}}) {
      SCOPED_TRACE(::testing::Message() << c.what << " in " << stride);
      std::vector<T> logits;
      for (std::size_t i = 0; i < stride; ++i) logits.push_back(T(i < c.logits.size() ? c.logits[i] : kNan));
      const auto result = this->run(true, logits, {c.label}, c.logits.size(), stride, 1);
      EXPECT_TRUE(std::isnan(c.loss) ? std::isnan(result.losses[0])
                                     : std::abs(result.losses[0] - c.loss) < 1e-4)
          << result.losses[0];
      EXPECT_EQ(result.hits[0], c.hit);
      for (std::size_t i = c.logits.size(); i < stride; ++i) EXPECT_EQ(doubles(result.logits)[i], 0);
    }
  }
}

// More rows than the threads have on their way together.
TYPED_TEST(CrossEntropyTest, SumsOfManyRows) {
  constexpr std::uint32_t kRows = 11'269;
  std::vector<float> losses;
  std::vector<std::int32_t> hits;
  double loss = 0, correct = 0;
  for (std::uint32_t r = 0; r < kRows; ++r) {
    losses.push_back(static_cast<float>(r));
    hits.push_back(r % 3 == 0 ? 1 : 0);
    loss += r;
    correct += hits.back();
  }
  const auto l = this->upload(losses);
  const auto h = this->upload(hits);
  const auto sums = this->template array<double>(3);
  const LossSumParams params{
      .losses = l.data(), .hits = h.data(), .result = sums.data(), .rows = kRows, .rows_per_sample = 1};
  ASSERT_TRUE(this->kernels_->sum(*this->stream_, params).ok());
  EXPECT_EQ(this->download(sums), (std::vector<double>{loss, correct, kRows}));
}

TEST(CrossEntropyShapes, AreABlockForEachRow) {
  EXPECT_EQ(cross_entropy_shape(DType::kBF16, 1000, 50304), (LaunchShape{.columns = 1000, .threads = 1024}));
  EXPECT_EQ(cross_entropy_shape(DType::kF32, 7, 10), (LaunchShape{.columns = 7, .threads = 32}));
  EXPECT_EQ(cross_entropy_shape(DType::kF32, 7, 256), (LaunchShape{.columns = 7, .threads = 64}));
}

}  // namespace
}  // namespace paceline::cuda

#include "runtime/cuda/columns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/unit/runtime/cuda/values.h"

namespace paceline::cuda {
namespace {

struct Shape {
  std::size_t rows, columns;
};

template <typename T>
class ColumnsTest : public KernelsTest<Columns> {
 protected:
  std::vector<float> sums(const std::vector<T>& x, const std::vector<float>& before, bool accumulate,
                          Shape shape) {
    const auto in = upload(x);
    const auto out = upload(before);
    const auto scratch = array<float>(Columns::scratch_elements(shape.rows, shape.columns));
    const absl::Status status = kernels_->sums(*stream_, kTypeOf<T>, in.data(), out.data(), accumulate,
                                               scratch.data(), shape.rows, shape.columns);
    EXPECT_TRUE(status.ok()) << status;
    return download(out);
  }

  Rng rng_{21, 0};
};

using Types = ::testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(ColumnsTest, Types);

TYPED_TEST(ColumnsTest, AreSummedOverAllRows) {
  using T = TypeParam;
  for (const Shape shape :
       {Shape{1, 1}, Shape{3, 5}, Shape{129, 8}, Shape{300, 33}, Shape{1000, 264}, Shape{40, 1031}}) {
    if (this->kSlow && shape.columns > 130) continue;
    SCOPED_TRACE(::testing::Message() << shape.rows << " x " << shape.columns);
    const auto x = random_values<T>(this->rng_, shape.rows * shape.columns);
    const auto before = random_values<float>(this->rng_, shape.columns);
    Doubles expected(shape.columns), more;
    for (std::size_t i = 0; i < x.size(); ++i) expected[i % shape.columns] += static_cast<float>(x[i]);
    for (std::size_t c = 0; c < shape.columns; ++c) more.push_back(expected[c] + before[c]);
    std::vector<float> first;
    this->in_both_orders([&] {
      const auto sums = this->sums(x, before, false, shape);
      expect_near(sums, expected, 1e-6, 32);
      expect_near(this->sums(x, before, true, shape), more, 1e-6, 32);
      EXPECT_TRUE(first.empty() || same_bits(first, sums));
      first = sums;
    });
  }
}

TYPED_TEST(ColumnsTest, OfNoRowsAreZeros) {
  EXPECT_EQ(this->sums({TypeParam(5)}, {1, 2, 3}, false, {0, 3}), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(this->sums({TypeParam(5)}, {1, 2, 3}, true, {0, 3}), (std::vector<float>{1, 2, 3}));
}

TEST(ColumnShapes, AreOfTheSizesAlone) {
  EXPECT_EQ(column_parts(0), 1U);
  EXPECT_EQ(column_parts(128), 1U);
  EXPECT_EQ(column_parts(129), 2U);
  EXPECT_EQ(column_parts(1'000'000), 128U);
  EXPECT_EQ(column_shape(DType::kBF16, 16'384, 3072),
            (LaunchShape{.columns = 12, .rows = 128, .threads = 256}));
  EXPECT_EQ(column_shape(DType::kF32, 100, 768), (LaunchShape{.columns = 6, .rows = 1, .threads = 256}));
  EXPECT_EQ(column_shape(DType::kF32, 100, 33), (LaunchShape{.columns = 2, .rows = 1, .threads = 256}));
}

}  // namespace
}  // namespace paceline::cuda

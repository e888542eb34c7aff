#include "runtime/cuda/elementwise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/unit/runtime/cuda/values.h"

namespace paceline::cuda {
namespace {

using Function = Elementwise::Function;

constexpr std::size_t kFunctionSizes[] = {1, 3, 4, 7, 8, 9, 63, 1024, 2049, 40'003};

double gelu(double x) {
  return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double gelu_slope(double x) {
  const double root = std::sqrt(2 / M_PI), t = std::tanh(root * (x + 0.044715 * x * x * x));
  return (1 + t) / 2 + x / 2 * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x);
}

struct Case {
  const char* name;
  Function function;
  double (*of)(double x);
  double (*slope)(double saved);  // of what backward is given
};
constexpr Case kCases[] = {
    {"relu", Function::kRelu, [](double x) { return std::max(x, 0.0); },
     [](double y) { return y > 0 ? 1.0 : 0.0; }},
    {"gelu", Function::kGelu, gelu, gelu_slope},
    {"tanh", Function::kTanh, [](double x) { return std::tanh(x); }, [](double y) { return 1 - y * y; }},
    {"sigmoid", Function::kSigmoid, [](double x) { return 1 / (1 + std::exp(-x)); },
     [](double y) { return y * (1 - y); }},
};

template <typename T>
class ElementwiseTest : public KernelsTest<Elementwise> {
 protected:
  // z of launch(x, y, z), out of place and over x and y.
  template <typename Launch>
  void check(const std::vector<T>& x, const std::vector<T>& y, const Doubles& expected, Launch launch,
             double tolerance = 1e-6) {
    for (int place = 0; place < 3; ++place) {
      const auto a = upload(x), b = upload(y), c = array<T>(x.size());
      const auto& z = place == 0 ? c : place == 1 ? a : b;
      if (z.count != x.size()) continue;
      const absl::Status status = launch(a.data(), b.data(), z.data());
      ASSERT_TRUE(status.ok()) << status;
      expect_near(download(z), expected, tolerance);
    }
  }

  Rng rng_{20, 0};
};

using Types = ::testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(ElementwiseTest, Types);

TYPED_TEST(ElementwiseTest, FunctionsAndTheirGradients) {
  using T = TypeParam;
  this->in_both_orders([&] {
    for (const Case& c : kCases) {
      SCOPED_TRACE(c.name);
      for (const std::size_t n : kFunctionSizes) {
        const auto x = random_values<T>(this->rng_, n, 3), dy = random_values<T>(this->rng_, n);
        Doubles y, dx;
        for (const double v : doubles(x)) y.push_back(c.of(v));
        this->check(x, dy, y, [&](const T* from, const T*, T* to) {
          return this->kernels_->apply(*this->stream_, c.function, kTypeOf<T>, from, to, n);
        });
        for (std::size_t i = 0; i < n; ++i) {
          const double saved = static_cast<float>(x[i]), gradient = static_cast<float>(dy[i]);
          dx.push_back(gradient * c.slope(saved));
        }
        this->check(
            x, dy, dx,
            [&](const T* saved, const T* gradient, T* to) {
              return this->kernels_->backward(*this->stream_, c.function, kTypeOf<T>, saved, gradient, to, n);
            },
            3e-6);
      }
    }
  });
}

TYPED_TEST(ElementwiseTest, SumsProductsAndMultiples) {
  using T = TypeParam;
  for (const std::size_t n : kFunctionSizes) {
    const auto x = random_values<T>(this->rng_, n), y = random_values<T>(this->rng_, n);
    Doubles sum, product, multiple;
    for (std::size_t i = 0; i < n; ++i) {
      const double a = static_cast<float>(x[i]), b = static_cast<float>(y[i]);
      sum.push_back(a + b);
      product.push_back(a * b);
      multiple.push_back(-1.25 * a);
    }
    this->check(x, y, sum, [&](const T* a, const T* b, T* z) {
      return this->kernels_->add(*this->stream_, kTypeOf<T>, a, b, z, n);
    });
    this->check(x, y, product, [&](const T* a, const T* b, T* z) {
      return this->kernels_->multiply(*this->stream_, kTypeOf<T>, a, b, z, n);
    });
    this->check(x, y, multiple, [&](const T* a, const T*, T* z) {
      return this->kernels_->scale(*this->stream_, kTypeOf<T>, -1.25F, a, z, n);
    });
  }
}

TYPED_TEST(ElementwiseTest, RowsAreAddedToEachPeriod) {
  using T = TypeParam;
  struct Shape {
    std::size_t rows, period;
  };
  for (const Shape& shape :
       {Shape{1, 1}, Shape{3, 5}, Shape{5, 8}, Shape{7, 12}, Shape{100, 768}, Shape{70, 1031}, Shape{0, 8}}) {
    const std::size_t rows = shape.rows, period = shape.period;
    SCOPED_TRACE(::testing::Message() << rows << " x " << period);
    const std::size_t n = rows * period;
    const auto x = random_values<T>(this->rng_, n, 2), row = random_values<T>(this->rng_, period);
    Doubles sum, activated;
    for (std::size_t i = 0; i < n; ++i) {
      sum.push_back(static_cast<double>(static_cast<float>(x[i])) + static_cast<float>(row[i % period]));
      activated.push_back(gelu(sum.back()));
    }
    this->check(x, row, sum, [&](const T* a, const T* b, T* z) {
      return this->kernels_->add_row(*this->stream_, kTypeOf<T>, a, b, z, n, period);
    });
    this->check(x, row, activated, [&](const T* a, const T* b, T* z) {
      return this->kernels_->bias_gelu(*this->stream_, kTypeOf<T>, a, b, z, n, period);
    });
  }
}

TYPED_TEST(ElementwiseTest, NanStaysNan) {
  using T = TypeParam;
  for (const Case& c : kCases) {
    SCOPED_TRACE(c.name);
    const auto x = this->upload(std::vector<T>{T(kNan), T(1), T(kInfinity), T(1e4F), T(-1e4F)});
    const auto dy = this->upload(std::vector<T>{T(1), T(kNan), T(1), T(1), T(1)});
    const auto y = this->template array<T>(5);
    ASSERT_TRUE(this->kernels_->apply(*this->stream_, c.function, kTypeOf<T>, x.data(), y.data(), 5).ok());
    const Doubles values = doubles(this->download(y));
    EXPECT_TRUE(std::isnan(values[0]));
    EXPECT_EQ(values[2], c.function == Function::kRelu || c.function == Function::kGelu ? kInfinity : 1);
    EXPECT_TRUE(std::isfinite(values[1]) && std::isfinite(values[3]) && std::isfinite(values[4]));
    ASSERT_TRUE(
        this->kernels_->backward(*this->stream_, c.function, kTypeOf<T>, x.data(), dy.data(), y.data(), 5)
            .ok());
    const Doubles slopes = doubles(this->download(y));
    EXPECT_TRUE(std::isnan(slopes[0]) && std::isnan(slopes[1]));
    if (c.function == Function::kGelu) {
      EXPECT_EQ(slopes[3], 1);
      EXPECT_EQ(slopes[4], 0);
    }
  }
}

TYPED_TEST(ElementwiseTest, NothingIsLaunchedForNothing) {
  PL_EMULATED_ONLY();
  using T = TypeParam;
  EXPECT_TRUE(this->kernels_->apply(*this->stream_, Function::kRelu, kTypeOf<T>, nullptr, nullptr, 0).ok());
  this->finish();
  EXPECT_EQ(fake().kernels_run(), 0U);
}

class ElementwiseErrors : public GpuTest {};

TEST_F(ElementwiseErrors, OtherTypesAreRefused) {
  const Elementwise kernels = must(Elementwise::load(context_));
  const auto x = array<double>(4);
  EXPECT_EQ(kernels.add(*stream_, DType::kF64, x.data(), x.data(), x.data(), 4).message(),
            "there are no kernels of type F64");
}

TEST_F(ElementwiseErrors, AKernelThatFailsIsToldByALaterCall) {
  PL_EMULATED_ONLY();
  const Elementwise kernels = must(Elementwise::load(context_));
  fake().control().fail = [](const std::string& call) {
    return call == "cuLaunchKernel" ? CUDA_ERROR_ECC_UNCORRECTABLE : CUDA_SUCCESS;
  };
  const auto x = array<float>(4);
  const absl::Status status = kernels.scale(*stream_, DType::kF32, 2, x.data(), x.data(), 4);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_EQ(status.message(), "scale_f32: cuLaunchKernel: CUDA_ERROR_ECC_UNCORRECTABLE (214)");
}

}  // namespace
}  // namespace paceline::cuda

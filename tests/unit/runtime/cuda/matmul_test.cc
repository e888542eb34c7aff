#include "runtime/cuda/matmul.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/fake_cublaslt/matmul_test_base.h"
#include "tests/unit/runtime/cuda/values.h"

namespace paceline::cuda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::uint64_t kSeed = 40;

class MatMulTest : public MatMulTestBase {
 protected:
  template <typename In, typename Out>
  void check(Product product, bool accumulate) {
    product.inputs = kTypeOf<In>;
    product.output = kTypeOf<Out>;
    const auto m = static_cast<std::size_t>(product.m), n = static_cast<std::size_t>(product.n),
               k = static_cast<std::size_t>(product.k), batch = static_cast<std::size_t>(product.batch);
    SCOPED_TRACE(::testing::Message()
                 << "seed " << kSeed << ": " << batch << " times " << m << " x " << k << " x " << n
                 << (product.a_transposed ? ", a transposed" : "")
                 << (product.b_transposed ? ", b transposed" : "") << (product.bias ? ", bias" : "")
                 << (accumulate ? ", accumulated" : ""));
    const auto stride = [&](std::int64_t s, std::size_t one) { return s == 0 ? one : one * batch; };
    const auto a = random_values<In>(rng_, stride(product.a_stride, m * k));
    const auto b = random_values<In>(rng_, stride(product.b_stride, n * k));
    const auto before = random_values<Out>(rng_, m * n * batch);
    const auto bias = random_values<Out>(rng_, n);
    Doubles expected;
    for (std::size_t i = 0; i < batch; ++i) {
      const std::size_t at_a = i * static_cast<std::size_t>(product.a_stride),
                        at_b = i * static_cast<std::size_t>(product.b_stride);
      for (std::size_t r = 0; r < m; ++r) {
        for (std::size_t c = 0; c < n; ++c) {
          double sum = product.bias ? static_cast<float>(bias[c]) : 0;
          if (accumulate) sum += static_cast<float>(before[i * m * n + r * n + c]);
          for (std::size_t j = 0; j < k; ++j) {
            sum += static_cast<double>(
                       static_cast<float>(a[at_a + (product.a_transposed ? j * m + r : r * k + j)])) *
                   static_cast<float>(b[at_b + (product.b_transposed ? c * k + j : j * n + c)]);
          }
          expected.push_back(sum);
        }
      }
    }
    const auto da = upload(a), db = upload(b);
    const auto dc = upload(before), dbias = upload(bias);
    MatMul matmul = must(MatMul::plan(library_, product));
    const auto workspace = array<std::byte>(matmul.workspace_bytes());
    const absl::Status status = matmul.run(*stream_, {.a = da.data(),
                                                      .b = db.data(),
                                                      .c = dc.data(),
                                                      .bias = product.bias ? dbias.data() : nullptr,
                                                      .workspace = workspace.data(),
                                                      .accumulate = accumulate});
    ASSERT_TRUE(status.ok()) << status;
    // fp32 sums of k products of normals.
    expect_near(download(dc), expected, 1e-6 * std::sqrt(static_cast<double>(k)), std::sqrt(k));
  }

  template <typename In, typename Out>
  void check_all() {
    for (const auto& [m, n, k] : {std::array{1, 1, 1}, {3, 5, 7}, {8, 16, 4}, {17, 1, 33}, {1, 64, 50}}) {
      for (const bool a_transposed : {false, true}) {
        for (const bool b_transposed : {false, true}) {
          for (const bool accumulate : {false, true}) {
            Product product{
                .m = m, .n = n, .k = k, .a_transposed = a_transposed, .b_transposed = b_transposed};
            check<In, Out>(product, accumulate);
            product.bias = true;
            check<In, Out>(product, accumulate);
          }
        }
      }
    }
  }

  Rng rng_{kSeed, 0};
};

TEST_F(MatMulTest, ProductsInFp32) {
  check_all<float, float>();
}
TEST_F(MatMulTest, ProductsInBf16) {
  check_all<BFloat16, BFloat16>();
}
TEST_F(MatMulTest, ProductsOfBf16InFp32) {
  check_all<BFloat16, float>();
}

// One matrix for all, or one for each.
TEST_F(MatMulTest, Batches) {
  Product product{.m = 3, .n = 8, .k = 5, .batch = 4};
  product.c_stride = 24;
  for (const bool one_a : {false, true}) {
    product.a_stride = one_a ? 0 : 15;
    product.b_stride = 40;
    check<float, float>(product, false);
    check<BFloat16, BFloat16>(product, true);
  }
}

TEST_F(MatMulTest, NothingIsMadeWhileItRuns) {
  PL_EMULATED_ONLY();
  const auto a = upload(random_values<float>(rng_, 6)), b = upload(random_values<float>(rng_, 6)),
             c = array<float>(4);
  MatMul matmul = must(MatMul::plan(library_, {.m = 2, .n = 2, .k = 3}));
  const auto workspace = array<std::byte>(matmul.workspace_bytes());
  const std::size_t objects = fake_library().objects(), allocations = fake().counts().allocations;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(
        matmul.run(*stream_, {.a = a.data(), .b = b.data(), .c = c.data(), .workspace = workspace.data()})
            .ok());
  }
  finish();
  EXPECT_EQ(fake_library().objects(), objects);
  EXPECT_EQ(fake().counts().allocations, allocations);
}

TEST_F(MatMulTest, WhatIsNoProductIsRefused) {
  const auto plan = [&](const Product& product) { return MatMul::plan(library_, product).status(); };
  EXPECT_TRUE(absl::IsInvalidArgument(plan({.m = 0, .n = 1, .k = 1})));
  EXPECT_TRUE(absl::IsInvalidArgument(plan({.m = 1, .n = 1, .k = -1})));
  EXPECT_TRUE(absl::IsInvalidArgument(plan({.m = 1, .n = 1, .k = 1, .output = DType::kBF16})));
  EXPECT_TRUE(absl::IsInvalidArgument(plan({.m = 1, .n = 1, .k = 1, .inputs = DType::kI32})));
}

TEST_F(MatMulTest, WhatHasNoAlgorithmIsSaid) {
  PL_EMULATED_ONLY();
  fake_library().control().finds_algorithms = false;
  const absl::Status status = MatMul::plan(library_, {.m = 4, .n = 5, .k = 6}).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(std::string(status.message()), StartsWith("product 4 x 6 x 5 of F32: "));
}

// Each call that can fail, once; nothing is left behind.
TEST_F(MatMulTest, ErrorsNameTheCallAndTheProduct) {
  PL_EMULATED_ONLY();
  const Product product{.m = 4, .n = 5, .k = 6, .bias = true, .batch = 2};
  for (const char* const call :
       {"cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute", "cublasLtMatrixLayoutCreate",
        "cublasLtMatrixLayoutSetAttribute", "cublasLtMatmulPreferenceCreate",
        "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulAlgoGetHeuristic"}) {
    fake_library().control().fail = [call](const std::string& name) {
      return name == call ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_SUCCESS;
    };
    const std::size_t objects = fake_library().objects();
    const absl::Status status = MatMul::plan(library_, product).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(StartsWith("product 4 x 6 x 5, 2 times of F32: "), HasSubstr(call),
                      HasSubstr("CUBLAS_STATUS_ALLOC_FAILED")));
    EXPECT_EQ(fake_library().objects(), objects) << call;
  }
  fake_library().control().fail = nullptr;
  MatMul matmul = must(MatMul::plan(library_, {.m = 1, .n = 1, .k = 1}));
  fake_library().control().fail = [](const std::string&) { return CUBLAS_STATUS_EXECUTION_FAILED; };
  const absl::Status status = matmul.run(*stream_, {});
  EXPECT_TRUE(absl::IsInternal(status)) << status;
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("cublasLtMatmul: CUBLAS_STATUS_EXECUTION_FAILED (13)"));
  fake_library().control().fail = nullptr;
}

}  // namespace
}  // namespace paceline::cuda

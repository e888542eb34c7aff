#include "runtime/cuda/matmul.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>

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
               k = static_cast<std::size_t>(product.k);
    SCOPED_TRACE(::testing::Message()
                 << "seed " << kSeed << ": " << m << " x " << k << " x " << n
                 << (product.a_transposed ? ", a transposed" : "")
                 << (product.b_transposed ? ", b transposed" : "") << (product.bias ? ", bias" : "")
                 << (accumulate ? ", accumulated" : ""));
    const auto a = random_values<In>(rng_, m * k);
    const auto b = random_values<In>(rng_, n * k);
    const auto before = random_values<Out>(rng_, m * n);
    const auto bias = random_values<Out>(rng_, n);
    Doubles expected;
    for (std::size_t r = 0; r < m; ++r) {
      for (std::size_t c = 0; c < n; ++c) {
        double sum = product.bias ? static_cast<float>(bias[c]) : 0;
        if (accumulate) sum += static_cast<float>(before[r * n + c]);
        for (std::size_t j = 0; j < k; ++j) {
          sum += static_cast<double>(static_cast<float>(a[product.a_transposed ? j * m + r : r * k + j])) *
                 static_cast<float>(b[product.b_transposed ? c * k + j : j * n + c]);
        }
        expected.push_back(sum);
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
    // fp32 sums of k products of normals. Of small matrices in bf16 cuBLASLt rounds the product, too, before
    // it adds to it.
    const bool rounds_twice = on_real_gpu() && kTypeOf<Out> == DType::kBF16 && (product.bias || accumulate);
    expect_near(download(dc), expected, rounds_twice ? 1.0 / 256 : 1e-6 * std::sqrt(static_cast<double>(k)),
                std::sqrt(k));
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

  // A product with GELU in it; its result, and what it keeps or is given. On a real GPU only what cuBLASLt
  // has: whoever plans it does GELU with a kernel of its own otherwise.
  struct Given {
    std::vector<float> a, b, bias, aux;  // bias empty: none
  };
  struct Made {
    Doubles c, aux;
  };
  template <typename T>
  std::optional<Made> run_gelu(Product product, const Given& given) {
    product.inputs = product.output = kTypeOf<T>;
    product.bias = !given.bias.empty();
    auto planned = MatMul::plan(library_, product);
    if (on_real_gpu() && absl::IsUnimplemented(planned.status())) return std::nullopt;
    MatMul matmul = must(std::move(planned));
    const auto typed = [&](const std::vector<float>& values) {
      return upload(std::vector<T>(values.begin(), values.end()));
    };
    const auto a = typed(given.a), b = typed(given.b), bias = typed(given.bias), aux = typed(given.aux);
    const auto c = array<T>(static_cast<std::size_t>(product.m * product.n));
    const auto workspace = array<std::byte>(matmul.workspace_bytes());
    const bool has_aux = product.gelu != Product::Gelu::kForward;
    const absl::Status status = matmul.run(*stream_, {.a = a.data(),
                                                      .b = b.data(),
                                                      .c = c.data(),
                                                      .bias = product.bias ? bias.data() : nullptr,
                                                      .aux = has_aux ? aux.data() : nullptr,
                                                      .workspace = workspace.data()});
    EXPECT_TRUE(status.ok()) << status;
    return Made{doubles(download(c)), doubles(download(aux))};
  }

  static double gelu(double x) {
    return x / 2 * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
  }
  static double gelu_slope(double x) {
    const double root = std::sqrt(2 / M_PI), t = std::tanh(root * (x + 0.044715 * x * x * x));
    return (1 + t) / 2 + x / 2 * (1 - t * t) * root * (1 + 3 * 0.044715 * x * x);
  }

  // The product is rounded before the bias is added, and the sum before GELU takes it, where cuBLASLt does
  // so, and tanh may be the GPU's own, of 11 bits: the emulated GPU's are none of it.
  template <typename T>
  void check_gelu(const Product& product) {
    const auto m = static_cast<std::size_t>(product.m), n = static_cast<std::size_t>(product.n),
               k = static_cast<std::size_t>(product.k);
    const bool backward = product.gelu == Product::Gelu::kBackward;
    for (const bool bias : {false, true}) {
      if (bias && backward) continue;
      SCOPED_TRACE(::testing::Message() << "seed " << kSeed << ": " << m << " x " << k << " x " << n
                                        << (bias ? ", bias" : "") << (backward ? ", backward" : ""));
      const auto some = [&](std::size_t count) {
        const auto values = random_values<T>(rng_, count);
        return std::vector<float>(values.begin(), values.end());
      };
      const Given given{some(m * k), some(n * k), some(bias ? n : 0), some(m * n)};
      const std::optional<Made> made = run_gelu<T>(product, given);
      if (!made.has_value()) continue;
      const double coarse = on_real_gpu() ? 8e-3 : 0, fine = 2e-6 * std::sqrt(static_cast<double>(k));
      const double rounding = kTypeOf<T> == DType::kBF16 ? 1.0 / 256 : 0;
      const auto near = [&](double value, double expected, double tolerance, double scale) {
        EXPECT_LE(std::abs(value - expected),
                  tolerance * std::max(1.0, std::abs(scale)) + rounding * std::abs(expected))
            << expected;
      };
      for (std::size_t i = 0; i < m * n; ++i) {
        double sum = bias ? given.bias[i % n] : 0;
        for (std::size_t j = 0; j < k; ++j) {
          sum += static_cast<double>(given.a[i / n * k + j]) *
                 given.b[product.b_transposed ? i % n * k + j : j * n + i % n];
        }
        near(made->c[i], backward ? sum * gelu_slope(given.aux[i]) : gelu(sum), fine + coarse, sum);
        if (product.gelu == Product::Gelu::kForwardKeeping) near(made->aux[i], sum, fine + coarse, sum);
        if (backward) {
          EXPECT_EQ(made->aux[i], given.aux[i]);
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

TEST_F(MatMulTest, GeluIsPartOfProducts) {
  using Gelu = Product::Gelu;
  for (const auto& [m, n, k] : {std::array{1, 8, 1}, {3, 16, 7}, {17, 24, 33}, {5, 64, 50}, {64, 128, 32}}) {
    for (const Gelu gelu : {Gelu::kForward, Gelu::kForwardKeeping, Gelu::kBackward}) {
      for (const bool b_transposed : {false, true}) {
        const Product product{.m = m, .n = n, .k = k, .b_transposed = b_transposed, .gelu = gelu};
        check_gelu<float>(product);
        check_gelu<BFloat16>(product);
      }
    }
  }
  check_gelu<float>({.m = 3, .n = 5, .k = 7, .gelu = Gelu::kForward});
}

// As in all operators: what is no number reaches what depends on it, and nothing else.
TEST_F(MatMulTest, NanGoesThroughGelu) {
  using Gelu = Product::Gelu;
  constexpr std::size_t kM = 16, kN = 32, kK = 16, kBad = 5;
  const auto is_nan = [](double x) { return std::isnan(x); };
  const auto check = [&]<typename T>(T) {
    for (const Gelu gelu : {Gelu::kForward, Gelu::kForwardKeeping, Gelu::kBackward}) {
      SCOPED_TRACE(static_cast<int>(gelu));
      const Product product{.m = kM, .n = kN, .k = kK, .gelu = gelu};
      Given given{std::vector<float>(kM * kK, 0.5F),
                  std::vector<float>(kK * kN, 0.25F),
                  {},
                  std::vector<float>(kM * kN, 1)};
      if (gelu != Gelu::kBackward) given.bias.assign(kN, 1);
      given.a[kBad * kK] = std::nanf("");
      if (const auto made = run_gelu<T>(product, given); made.has_value()) {
        for (std::size_t i = 0; i < kM * kN; ++i) EXPECT_EQ(is_nan(made->c[i]), i / kN == kBad) << i;
        if (gelu == Gelu::kForwardKeeping) {
          EXPECT_EQ(std::ranges::count_if(made->aux, is_nan), kN);
        }
      }
      if (gelu != Gelu::kBackward) continue;
      given.a[kBad * kK] = 1;
      given.aux[kBad] = std::nanf("");
      if (const auto made = run_gelu<T>(product, given); made.has_value()) {
        for (std::size_t i = 0; i < kM * kN; ++i) EXPECT_EQ(is_nan(made->c[i]), i == kBad) << i;
      }
    }
  };
  check(float());
  check(BFloat16());
}

// The library of the tests wants of an epilogue what the real one wants.
TEST_F(MatMulTest, AuxiliaryOutputOfGeluMustBeDescribed) {
  PL_EMULATED_ONLY();
  const CublasLt::Calls& calls = library_->calls();
  cublasLtMatmulDesc_t description;
  cublasLtMatrixLayout_t matrix;  // 16 x 16, all three
  cublasLtMatmulPreference_t preference;
  ASSERT_EQ(calls.cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F), 0);
  ASSERT_EQ(calls.cublasLtMatrixLayoutCreate(&matrix, CUDA_R_16BF, 16, 16, 16), 0);
  ASSERT_EQ(calls.cublasLtMatmulPreferenceCreate(&preference), 0);
  const std::uint64_t most = kMostWorkspace;
  const std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
  calls.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &most,
                                             sizeof most);
  calls.cublasLtMatmulPreferenceSetAttribute(preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                             &reductions, sizeof reductions);
  cublasLtMatmulHeuristicResult_t found{};
  const auto choose = [&](cublasLtEpilogue_t epilogue, std::int64_t leading, std::uintptr_t aux) {
    const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
      EXPECT_EQ(calls.cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value), 0);
    };
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, leading);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, aux);
    int count = 0;
    return calls.cublasLtMatmulAlgoGetHeuristic(library_->handle(), description, matrix, matrix, matrix,
                                                matrix, preference, 1, &found, &count);
  };
  for (const auto epilogue : {CUBLASLT_EPILOGUE_GELU_AUX, CUBLASLT_EPILOGUE_DGELU}) {
    EXPECT_EQ(choose(epilogue, 0, 16), CUBLAS_STATUS_INVALID_VALUE);
    EXPECT_EQ(choose(epilogue, 8, 16), CUBLAS_STATUS_INVALID_VALUE) << "less than the rows";
    EXPECT_EQ(choose(epilogue, 20, 16), CUBLAS_STATUS_INVALID_VALUE) << "no multiple of 8";
    EXPECT_EQ(choose(epilogue, 24, 16), CUBLAS_STATUS_SUCCESS);
  }
  EXPECT_EQ(choose(CUBLASLT_EPILOGUE_DGELU_BGRAD, 16, 16), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(choose(CUBLASLT_EPILOGUE_GELU, 0, 0), CUBLAS_STATUS_SUCCESS);

  const auto memory = array<BFloat16>(16 * 16);
  const auto workspace = array<std::byte>(1024);
  const auto run = [&](std::uintptr_t aux) {
    calls.cublasLtMatmulDescSetAttribute(description, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, &aux,
                                         sizeof aux);
    const float one = 1, zero = 0;
    return calls.cublasLtMatmul(library_->handle(), description, &one, memory.data(), matrix, memory.data(),
                                matrix, &zero, memory.data(), matrix, memory.data(), matrix, &found.algo,
                                workspace.data(), 1024, stream_->handle());
  };
  ASSERT_EQ(choose(CUBLASLT_EPILOGUE_GELU_AUX, 16, 16), CUBLAS_STATUS_SUCCESS);
  EXPECT_EQ(run(0), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(run(reinterpret_cast<std::uintptr_t>(memory.data()) + 2), CUBLAS_STATUS_INVALID_VALUE);
  EXPECT_EQ(run(reinterpret_cast<std::uintptr_t>(memory.data()) + 16), CUBLAS_STATUS_EXECUTION_FAILED);
  calls.cublasLtMatmulPreferenceDestroy(preference);
  calls.cublasLtMatrixLayoutDestroy(matrix);
  calls.cublasLtMatmulDescDestroy(description);
  EXPECT_EQ(fake().problems().size(), 10U);
  fake().forgive();
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

TEST_F(MatMulTest, InvalidProductIsRefused) {
  const auto plan = [&](const Product& product) { return MatMul::plan(library_, product).status(); };
  EXPECT_TRUE(absl::IsInvalidArgument(plan({.m = 0, .n = 1, .k = 1})));
  EXPECT_TRUE(absl::IsInvalidArgument(plan({.m = 1, .n = 1, .k = -1})));
  EXPECT_TRUE(absl::IsInvalidArgument(plan({.m = 1, .n = 1, .k = 1, .output = DType::kBF16})));
  EXPECT_TRUE(absl::IsInvalidArgument(plan({.m = 1, .n = 1, .k = 1, .inputs = DType::kI32})));
  using Gelu = Product::Gelu;
  EXPECT_TRUE(absl::IsInvalidArgument(plan({.m = 1, .n = 8, .k = 1, .bias = true, .gelu = Gelu::kBackward})));
}

TEST_F(MatMulTest, ProductWithoutAnAlgorithmIsUnimplemented) {
  PL_EMULATED_ONLY();
  fake_library().control().finds_algorithms = false;
  const absl::Status status = MatMul::plan(library_, {.m = 4, .n = 5, .k = 6}).status();
  EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
  EXPECT_THAT(std::string(status.message()), StartsWith("product 4 x 6 x 5 of F32: "));
}

TEST_F(MatMulTest, ProductsWithGeluMayHaveNoAlgorithm) {
  PL_EMULATED_ONLY();
  using Gelu = Product::Gelu;
  const auto message = [&](const Product& product) {
    const absl::Status status = MatMul::plan(library_, product).status();
    EXPECT_TRUE(absl::IsUnimplemented(status)) << status;
    return std::string(status.message());
  };
  for (const Gelu gelu : {Gelu::kForwardKeeping, Gelu::kBackward})
    EXPECT_THAT(message({.m = 4, .n = 12, .k = 6, .gelu = gelu}), HasSubstr("multiples of 8"));
  EXPECT_TRUE(MatMul::plan(library_, {.m = 4, .n = 12, .k = 6, .gelu = Gelu::kForward}).ok());
  fake_library().control().finds_gelu = false;
  EXPECT_THAT(message({.m = 4, .n = 8, .k = 6, .gelu = Gelu::kForward}),
              StartsWith("product 4 x 6 x 8 of F32 with GELU: "));
  EXPECT_THAT(message({.m = 4, .n = 8, .k = 6, .gelu = Gelu::kBackward}),
              StartsWith("product 4 x 6 x 8 of F32 with GELU backward: "));
  EXPECT_TRUE(MatMul::plan(library_, {.m = 4, .n = 8, .k = 6}).ok());
  fake_library().control().finds_gelu = true;
  fake_library().control().fail = [](const std::string& name) {
    return name == "cublasLtMatmulAlgoGetHeuristic" ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_SUCCESS;
  };
  EXPECT_THAT(message({.m = 4, .n = 8, .k = 6, .gelu = Gelu::kForward}), HasSubstr("INVALID_VALUE"));
  EXPECT_FALSE(absl::IsUnimplemented(MatMul::plan(library_, {.m = 4, .n = 8, .k = 6}).status()));
  fake_library().control().fail = nullptr;
}

// Each call that can fail, once; nothing is left behind.
TEST_F(MatMulTest, ErrorsNameTheCallAndTheProduct) {
  PL_EMULATED_ONLY();
  const Product product{.m = 4, .n = 5, .k = 6, .bias = true};
  for (const char* const call : {"cublasLtMatmulDescCreate", "cublasLtMatmulDescSetAttribute",
                                 "cublasLtMatrixLayoutCreate", "cublasLtMatmulPreferenceCreate",
                                 "cublasLtMatmulPreferenceSetAttribute", "cublasLtMatmulAlgoGetHeuristic"}) {
    fake_library().control().fail = [call](const std::string& name) {
      return name == call ? CUBLAS_STATUS_ALLOC_FAILED : CUBLAS_STATUS_SUCCESS;
    };
    const std::size_t objects = fake_library().objects();
    const absl::Status status = MatMul::plan(library_, product).status();
    EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    EXPECT_THAT(std::string(status.message()),
                AllOf(StartsWith("product 4 x 6 x 5 of F32: "), HasSubstr(call),
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

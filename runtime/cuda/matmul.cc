#include "runtime/cuda/matmul.h"

#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace paceline::cuda {

namespace {

cudaDataType_t data_type(DType type) {
  return type == DType::kBF16 ? CUDA_R_16BF : CUDA_R_32F;
}

bool has_aux(const Product& p) {
  return p.gelu == Product::Gelu::kForwardKeeping || p.gelu == Product::Gelu::kBackward;
}

cublasLtEpilogue_t epilogue(const Product& p) {
  switch (p.gelu) {
    case Product::Gelu::kNone:
      break;
    case Product::Gelu::kForward:
      return p.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
    case Product::Gelu::kForwardKeeping:
      return p.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    case Product::Gelu::kBackward:
      return CUBLASLT_EPILOGUE_DGELU;
  }
  return p.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

// Of the leading dimension of what GELU keeps.
constexpr std::int64_t kAuxMultiple = 8;

absl::Status check(const Product& p) {
  const auto known = [](DType type) { return type == DType::kF32 || type == DType::kBF16; };
  if (!known(p.inputs) || !known(p.output) || (p.output != p.inputs && p.output != DType::kF32)) {
    return absl::InvalidArgumentError(str_cat("no product of ", dtype_name(p.inputs), " makes ",
                                              dtype_name(p.output),
                                              "; allowed: fp32, bf16, and bf16 to fp32"));
  }
  if (p.m <= 0 || p.n <= 0 || p.k <= 0)
    return absl::InvalidArgumentError("the sizes of a product are above 0");
  if (p.gelu == Product::Gelu::kBackward && p.bias)
    return absl::InvalidArgumentError("a product in GELU's backward pass has no bias");
  return absl::OkStatus();
}

// Of every address: what algorithms are chosen for.
constexpr std::uint32_t kAlignment = 16;

std::string in_words(const Product& p) {
  return str_cat("product ", p.m, " x ", p.k, " x ", p.n, " of ", dtype_name(p.inputs),
                 p.gelu == Product::Gelu::kNone       ? ""
                 : p.gelu == Product::Gelu::kBackward ? " with GELU backward"
                                                      : " with GELU");
}

}  // namespace

// Owns what it makes; as cuBLASLt sees it, with a and b exchanged.
struct MatMul::Parts {
  Parts(std::shared_ptr<const CublasLt> l, const Product& p) : library(std::move(l)), product(p) {}
  ~Parts() {
    const CublasLt::Calls& calls = library->calls();
    for (cublasLtMatrixLayout_t layout : {a, b, c}) {
      if (layout != nullptr) calls.cublasLtMatrixLayoutDestroy(layout);
    }
    if (preference != nullptr) calls.cublasLtMatmulPreferenceDestroy(preference);
    if (description != nullptr) calls.cublasLtMatmulDescDestroy(description);
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  template <typename T>
  absl::Status describe(cublasLtMatmulDescAttributes_t attribute, const T& value) {
    return library->check(
        library->calls().cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value),
        "cublasLtMatmulDescSetAttribute");
  }
  template <typename T>
  absl::Status prefer(cublasLtMatmulPreferenceAttributes_t attribute, const T& value) {
    return library->check(
        library->calls().cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
        "cublasLtMatmulPreferenceSetAttribute");
  }

  absl::Status make_description();
  // A row-major matrix of `rows` x `columns`, in cuBLASLt's words one of `columns` x `rows`.
  absl::Status make_layout(cublasLtMatrixLayout_t& layout, DType type, std::int64_t rows,
                           std::int64_t columns);
  absl::Status choose();

  const std::shared_ptr<const CublasLt> library;
  const Product product;
  cublasLtMatmulDesc_t description = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
  cublasLtMatmulAlgo_t algorithm{};
  std::size_t workspace_bytes = 0;
};

absl::Status MatMul::Parts::make_description() {
  PL_RETURN_IF_ERROR(
      library->check(library->calls().cublasLtMatmulDescCreate(&description, CUBLAS_COMPUTE_32F, CUDA_R_32F),
                     "cublasLtMatmulDescCreate"));
  const cublasOperation_t first = product.b_transposed ? CUBLAS_OP_T : CUBLAS_OP_N,
                          second = product.a_transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  PL_RETURN_IF_ERROR(describe(CUBLASLT_MATMUL_DESC_TRANSA, first));
  PL_RETURN_IF_ERROR(describe(CUBLASLT_MATMUL_DESC_TRANSB, second));
  if (const cublasLtEpilogue_t wanted = epilogue(product); wanted != CUBLASLT_EPILOGUE_DEFAULT)
    PL_RETURN_IF_ERROR(describe(CUBLASLT_MATMUL_DESC_EPILOGUE, wanted));
  // The choice of an algorithm looks at the addresses' alignment.
  if (product.bias) {
    PL_RETURN_IF_ERROR(describe(CUBLASLT_MATMUL_DESC_BIAS_POINTER, std::uintptr_t{kAlignment}));
    PL_RETURN_IF_ERROR(describe(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, data_type(product.output)));
  }
  if (!has_aux(product)) return absl::OkStatus();
  if (product.n % kAuxMultiple != 0)
    return absl::UnimplementedError(str_cat("cuBLASLt keeps no rows but of multiples of ", kAuxMultiple));
  PL_RETURN_IF_ERROR(describe(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, std::uintptr_t{kAlignment}));
  return describe(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, product.n);  // its type is c's
}

absl::Status MatMul::Parts::make_layout(cublasLtMatrixLayout_t& layout, DType type, std::int64_t rows,
                                        std::int64_t columns) {
  return library->check(library->calls().cublasLtMatrixLayoutCreate(
                            &layout, data_type(type), static_cast<std::uint64_t>(columns),
                            static_cast<std::uint64_t>(rows), columns),
                        "cublasLtMatrixLayoutCreate");
}

absl::Status MatMul::Parts::choose() {
  PL_RETURN_IF_ERROR(library->check(library->calls().cublasLtMatmulPreferenceCreate(&preference),
                                    "cublasLtMatmulPreferenceCreate"));
  PL_RETURN_IF_ERROR(prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{kMostWorkspace}));
  // Sums are joined in a workspace or not at all (see the header), and as fp32.
  PL_RETURN_IF_ERROR(prefer(
      CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
      static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE) |
          (product.output == DType::kF32 ? static_cast<std::uint32_t>(CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE)
                                         : 0U)));
  for (const auto operand :
       {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES})
    PL_RETURN_IF_ERROR(prefer(operand, kAlignment));
  cublasLtMatmulHeuristicResult_t found{};
  int count = 0;
  const cublasStatus_t asked = library->calls().cublasLtMatmulAlgoGetHeuristic(
      library->handle(), description, b, a, c, c, preference, 1, &found, &count);
  const absl::Status status = library->check(asked, "cublasLtMatmulAlgoGetHeuristic");
  // So it also says that it does not do an epilogue with these types and sizes.
  if (asked == CUBLAS_STATUS_INVALID_VALUE && product.gelu != Product::Gelu::kNone)
    return absl::UnimplementedError(status.message());
  PL_RETURN_IF_ERROR(status);
  if (count == 0 || found.state != CUBLAS_STATUS_SUCCESS)
    return absl::UnimplementedError("cuBLASLt has no algorithm for it");
  algorithm = found.algo;
  workspace_bytes = found.workspaceSize;
  return absl::OkStatus();
}

absl::StatusOr<MatMul> MatMul::plan(std::shared_ptr<const CublasLt> library, const Product& product) {
  PL_RETURN_IF_ERROR(check(product));
  PL_RETURN_IF_ERROR(library->context()->enter());
  auto parts = std::make_unique<Parts>(std::move(library), product);
  const auto named = [&](const absl::Status& status) { return with_context(status, in_words(product)); };
  const Product& p = product;
  absl::Status status = parts->make_description();
  if (status.ok()) {
    status = p.a_transposed ? parts->make_layout(parts->a, p.inputs, p.k, p.m)
                            : parts->make_layout(parts->a, p.inputs, p.m, p.k);
  }
  if (status.ok()) {
    status = p.b_transposed ? parts->make_layout(parts->b, p.inputs, p.n, p.k)
                            : parts->make_layout(parts->b, p.inputs, p.k, p.n);
  }
  if (status.ok()) status = parts->make_layout(parts->c, p.output, p.m, p.n);
  if (status.ok()) status = parts->choose();
  if (!status.ok()) return named(status);
  return MatMul(std::move(parts));
}

MatMul::MatMul(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
MatMul::MatMul(MatMul&&) noexcept = default;
MatMul::~MatMul() = default;

std::size_t MatMul::workspace_bytes() const {
  return parts_->workspace_bytes;
}

absl::Status MatMul::run(Stream& stream, const Operands& operands) {
  Parts& p = *parts_;
  PL_CHECK(p.product.bias == (operands.bias != nullptr),
           "a bias is given where the product was planned with one");
  PL_CHECK(has_aux(p.product) == (operands.aux != nullptr), "GELU's operand is given where it is planned");
  PL_CHECK(p.product.gelu == Product::Gelu::kNone || !operands.accumulate, "GELU is not added up");
  if (p.product.bias) PL_RETURN_IF_ERROR(p.describe(CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias));
  if (operands.aux != nullptr)
    PL_RETURN_IF_ERROR(p.describe(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, operands.aux));
  const float one = 1, kept = operands.accumulate ? 1.0F : 0.0F;
  const absl::Status status = p.library->check(
      p.library->calls().cublasLtMatmul(p.library->handle(), p.description, &one, operands.b, p.b, operands.a,
                                        p.a, &kept, operands.c, p.c, operands.c, p.c, &p.algorithm,
                                        operands.workspace, p.workspace_bytes, stream.handle()),
      "cublasLtMatmul");
  return status.ok() ? status : with_context(status, in_words(p.product));
}

}  // namespace paceline::cuda

#include "tests/support/fake_cublaslt/fake_cublaslt.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstring>
#include <mutex>
#include <utility>

#include "tests/support/fake_cublaslt/product.h"
#include "tests/support/fake_cuda/fake_cuda.h"
#include "tests/support/paths.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace paceline::fake_cublaslt {
namespace {

// What cuBLASLt's opaque pointers point to, beside what product.h has.
struct Preference {
  std::uint64_t workspace = 0;
  std::uint32_t reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  std::uint32_t alignment = 256;  // the least of all operands'
};

struct State {
  Control control;
  std::size_t objects = 0, products = 0;
};
std::mutex& lock() {
  static auto* const lock = new std::mutex;
  return *lock;
}
State& state() {
  static auto* const state = new State;
  return *state;
}

fake_cuda::FakeCuda& gpu() {
  static fake_cuda::FakeCuda* const library = [] {
    void* const handle = dlopen(binary_path(PACELINE_FAKE_CUDA).c_str(), RTLD_NOW);
    return reinterpret_cast<fake_cuda::Get>(dlsym(handle, fake_cuda::kGet))();
  }();
  return *library;
}

class Library final : public FakeCublasLt {
 public:
  Control& control() override { return state().control; }
  std::size_t objects() override {
    const std::lock_guard held(lock());
    return state().objects;
  }
  std::size_t products() override {
    const std::lock_guard held(lock());
    return state().products;
  }
  void reset() override {
    const std::lock_guard held(lock());
    state() = State();
  }
};

cublasStatus_t asked(const char* call) {
  std::function<cublasStatus_t(const std::string&)> fail;
  {
    const std::lock_guard held(lock());
    fail = state().control.fail;
  }
  return fail ? fail(call) : CUBLAS_STATUS_SUCCESS;
}

void count(int change) {
  const std::lock_guard held(lock());
  state().objects += static_cast<std::size_t>(change);
}

template <typename T, typename Handle>
T& at(Handle handle) {
  return *reinterpret_cast<T*>(handle);
}
template <typename T, typename Handle, typename... Args>
cublasStatus_t make(Handle* handle, Args... args) {
  *handle = reinterpret_cast<Handle>(new T{args...});
  count(1);
  return CUBLAS_STATUS_SUCCESS;
}
template <typename T, typename Handle>
cublasStatus_t destroy(Handle handle) {
  if (handle == nullptr) return CUBLAS_STATUS_INVALID_VALUE;
  delete &at<T>(handle);
  count(-1);
  return CUBLAS_STATUS_SUCCESS;
}
template <typename T>
cublasStatus_t set(T& value, const void* from, std::size_t bytes) {
  if (bytes != sizeof value) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&value, from, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t refuse(cublasStatus_t status, const std::string& why) {
  gpu().report("cuBLASLt: " + why);
  return status;
}

cublasStatus_t check(const Description& d, const Layout& a, const Layout& b, const Layout& c) {
  for (const Layout* l : {&a, &b, &c}) {
    if (l->rows == 0 || l->columns == 0 || l->leading < static_cast<std::int64_t>(l->rows))
      return refuse(CUBLAS_STATUS_INVALID_VALUE, "a layout is no matrix");
  }
  if (sizes_of(d, a, b, c).k == 0) return refuse(CUBLAS_STATUS_INVALID_VALUE, "the matrices do not fit");
  if (a.type != b.type || (c.type != a.type && c.type != CUDA_R_32F)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (d.epilogue != CUBLASLT_EPILOGUE_DEFAULT && !d.biased() && !d.activates() && !d.derives())
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "an epilogue that the tests do not know");
  if (d.biased() && d.bias_type != c.type) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (!d.has_aux()) return CUBLAS_STATUS_SUCCESS;
  if (d.aux_leading % 8 != 0 || d.aux_leading < static_cast<std::int64_t>(c.rows))
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "the leading dimension of what GELU keeps is none");
  return CUBLAS_STATUS_SUCCESS;
}

// What an algorithm is: an answer for these layouts, and no others.
struct Algorithm {
  std::uint64_t magic = 0x706163656c696e65u;
  std::uint64_t workspace = 0;
  std::uint64_t m = 0, n = 0, k = 0;
  std::uint64_t alignment = 0;
  std::uint64_t bias_alignment = 0, aux_alignment = 0;  // 0: none
};

// As the real one: of no address it thinks the best.
std::uint64_t alignment_of(const void* address) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address);
  return bits == 0 ? 256 : bits & (~bits + 1);
}
static_assert(sizeof(Algorithm) <= sizeof(cublasLtMatmulAlgo_t));

}  // namespace
}  // namespace paceline::fake_cublaslt

using namespace paceline::fake_cublaslt;  // NOLINT: this file is the library of that name

#define BEGIN_CALL() \
  if (const cublasStatus_t wanted = asked(__func__); wanted != CUBLAS_STATUS_SUCCESS) return wanted

EXPORTED FakeCublasLt* paceline_fake_cublaslt() {
  static auto* const library = new Library;
  return library;
}

EXPORTED size_t cublasLtGetVersion() {
  return state().control.version;
}
EXPORTED const char* cublasLtGetStatusName(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_ALLOC_FAILED:
      return "CUBLAS_STATUS_ALLOC_FAILED";
    case CUBLAS_STATUS_NOT_SUPPORTED:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    case CUBLAS_STATUS_INVALID_VALUE:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case CUBLAS_STATUS_EXECUTION_FAILED:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    default:
      return nullptr;
  }
}
EXPORTED cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  BEGIN_CALL();
  return make<int>(handle, 0);
}
EXPORTED cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle) {
  return destroy<int>(handle);
}

EXPORTED cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t* d, cublasComputeType_t compute,
                                                 cudaDataType_t scale) {
  BEGIN_CALL();
  if (compute != CUBLAS_COMPUTE_32F || scale != CUDA_R_32F) return CUBLAS_STATUS_NOT_SUPPORTED;
  return make<Description>(d);
}
EXPORTED cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) {
  return destroy<Description>(d);
}
EXPORTED cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t handle,
                                                       cublasLtMatmulDescAttributes_t attribute,
                                                       const void* value, size_t bytes) {
  BEGIN_CALL();
  auto& d = at<Description>(handle);
  switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA:
      return set(d.first, value, bytes);
    case CUBLASLT_MATMUL_DESC_TRANSB:
      return set(d.second, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE:
      return set(d.epilogue, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
      return set(d.bias, value, bytes);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
      return set(d.bias_type, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER:
      return set(d.aux, value, bytes);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD:
      return set(d.aux_leading, value, bytes);
    default:
      return refuse(CUBLAS_STATUS_INVALID_VALUE, "an attribute of a product that the tests do not know");
  }
}

EXPORTED cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t* layout, cudaDataType_t type,
                                                   uint64_t rows, uint64_t columns, int64_t leading) {
  BEGIN_CALL();
  if (type != CUDA_R_32F && type != CUDA_R_16BF) return CUBLAS_STATUS_NOT_SUPPORTED;
  return make<Layout>(layout, type, rows, columns, leading);
}
EXPORTED cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) {
  return destroy<Layout>(layout);
}

EXPORTED cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t* preference) {
  BEGIN_CALL();
  return make<Preference>(preference);
}
EXPORTED cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) {
  return destroy<Preference>(preference);
}
EXPORTED cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t handle,
                                                             cublasLtMatmulPreferenceAttributes_t attribute,
                                                             const void* value, size_t bytes) {
  BEGIN_CALL();
  auto& preference = at<Preference>(handle);
  switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
      return set(preference.workspace, value, bytes);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK:
      return set(preference.reductions, value, bytes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
      return set(preference.alignment, value, bytes);
    default:
      return refuse(CUBLAS_STATUS_INVALID_VALUE, "a preference that the tests do not know");
  }
}

EXPORTED cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t description,
                                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                                       cublasLtMatmulPreference_t handle, int most,
                                                       cublasLtMatmulHeuristicResult_t results[],
                                                       int* count) {
  BEGIN_CALL();
  const auto& preference = at<Preference>(handle);
  const auto& wanted = at<Description>(description);
  const auto &la = at<Layout>(a), &lb = at<Layout>(b), &lc = at<Layout>(c);
  const cublasStatus_t fits = check(wanted, la, lb, lc);
  if (fits != CUBLAS_STATUS_SUCCESS) return fits;
  if ((preference.reductions & CUBLASLT_REDUCTION_SCHEME_INPLACE) != 0)
    gpu().report("cuBLASLt: sums may be joined in place, in any order");
  const Control& control = state().control;
  *count = 0;
  if (most < 1 || !control.finds_algorithms || control.workspace_bytes > preference.workspace || c != d)
    return CUBLAS_STATUS_NOT_SUPPORTED;
  if (!control.finds_gelu && (wanted.activates() || wanted.derives())) return CUBLAS_STATUS_NOT_SUPPORTED;
  const Sizes sizes = sizes_of(wanted, la, lb, lc);
  const Algorithm found{.workspace = control.workspace_bytes,
                        .m = sizes.m,
                        .n = sizes.n,
                        .k = sizes.k,
                        .alignment = preference.alignment,
                        .bias_alignment = wanted.biased() ? alignment_of(wanted.bias) : 0,
                        .aux_alignment = wanted.has_aux() ? alignment_of(wanted.aux) : 0};
  std::memcpy(static_cast<void*>(&results[0].algo), &found, sizeof found);
  results[0].workspaceSize = control.workspace_bytes;
  results[0].state = CUBLAS_STATUS_SUCCESS;
  *count = 1;
  return CUBLAS_STATUS_SUCCESS;
}

EXPORTED cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t description, const void* alpha,
                                       const void* a, cublasLtMatrixLayout_t layout_a, const void* b,
                                       cublasLtMatrixLayout_t layout_b, const void* beta, const void* c,
                                       cublasLtMatrixLayout_t layout_c, void* d, cublasLtMatrixLayout_t,
                                       const cublasLtMatmulAlgo_t* chosen, void* workspace,
                                       size_t workspace_bytes, cudaStream_t stream) {
  BEGIN_CALL();
  const Product work{at<Description>(description),
                     at<Layout>(layout_a),
                     at<Layout>(layout_b),
                     at<Layout>(layout_c),
                     a,
                     b,
                     d,
                     *static_cast<const float*>(alpha),
                     *static_cast<const float*>(beta)};
  const cublasStatus_t fits = check(work.d, work.a, work.b, work.c);
  if (fits != CUBLAS_STATUS_SUCCESS) return fits;
  Algorithm algorithm;
  std::memcpy(static_cast<void*>(&algorithm), chosen, sizeof algorithm);
  const Sizes sizes = sizes_of(work.d, work.a, work.b, work.c);
  if (algorithm.magic != Algorithm().magic || algorithm.m != sizes.m || algorithm.n != sizes.n ||
      algorithm.k != sizes.k)
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "an algorithm of another product");
  if (c != d) return refuse(CUBLAS_STATUS_INVALID_VALUE, "c and d differ");
  const auto aligned = [](const void* p, std::size_t to) {
    return reinterpret_cast<std::uintptr_t>(p) % to == 0;
  };
  if (!aligned(a, algorithm.alignment) || !aligned(b, algorithm.alignment) ||
      !aligned(d, algorithm.alignment))
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "an operand is not aligned as the preference says");
  if (workspace_bytes < algorithm.workspace ||
      (algorithm.workspace > 0 && (!aligned(workspace, 16) || !gpu().holds(workspace, algorithm.workspace))))
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "the workspace is none, or too small");
  if (!gpu().holds(a, work.a.bytes()) || !gpu().holds(b, work.b.bytes()) || !gpu().holds(d, work.c.bytes()))
    return refuse(CUBLAS_STATUS_EXECUTION_FAILED, "a matrix lies outside of the device's memory");
  if (work.d.biased() && !aligned(work.d.bias, algorithm.bias_alignment))
    return refuse(CUBLAS_STATUS_INVALID_VALUE,
                  "the bias is not aligned as it was when the algorithm was chosen");
  if (work.d.biased() && !gpu().holds(work.d.bias, sizes.m * work.c.element()))
    return refuse(CUBLAS_STATUS_EXECUTION_FAILED, "the bias lies outside of the device's memory");
  if (work.d.has_aux()) {
    if (work.d.aux == nullptr || algorithm.aux_alignment == 0 ||
        !aligned(work.d.aux, algorithm.aux_alignment))
      return refuse(CUBLAS_STATUS_INVALID_VALUE,
                    "what GELU keeps is nowhere, or not aligned as it was when the algorithm was chosen");
    const std::size_t elements = static_cast<std::size_t>(work.d.aux_leading) * (sizes.n - 1) + sizes.m;
    if (!gpu().holds(work.d.aux, elements * work.c.element()))
      return refuse(CUBLAS_STATUS_EXECUTION_FAILED, "what GELU keeps lies outside of the device's memory");
  }
  if (!gpu().add(stream, [work, workspace, bytes = algorithm.workspace] {
        if (bytes > 0) std::memset(workspace, 0xff, bytes);  // its content is anything
        work();
      }))
    return refuse(CUBLAS_STATUS_INVALID_VALUE, "there is no such stream");
  const std::lock_guard held(lock());
  ++state().products;
  return CUBLAS_STATUS_SUCCESS;
}

#pragma once

// NVIDIA's matrix products (libcublasLt.so.13) by their C interface, opened at run time. Names, arguments and
// errors are those of cuBLASLt.

#include <cublasLt.h>

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/cuda/context.h"

namespace paceline::cuda {

// clang-format off
#define PACELINE_CUBLASLT_CALLS(X)                                                                             \
  X(cublasLtCreate) X(cublasLtDestroy) X(cublasLtGetVersion) X(cublasLtGetStatusName)                          \
  X(cublasLtMatmulDescCreate) X(cublasLtMatmulDescDestroy) X(cublasLtMatmulDescSetAttribute)                   \
  X(cublasLtMatrixLayoutCreate) X(cublasLtMatrixLayoutDestroy)                                              \
  X(cublasLtMatmulPreferenceCreate) X(cublasLtMatmulPreferenceDestroy) X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatmulAlgoGetHeuristic) X(cublasLtMatmul)
// clang-format on

// One of a context. Thread-safe.
class CublasLt {
 public:
  // Opens libcublasLt.so.13 (or `path`). Errors:
  //   NOT_FOUND            there is none; the message says how to get it
  //   FAILED_PRECONDITION  it can't be loaded, or is of another major version
  //   RESOURCE_EXHAUSTED, INTERNAL  it does not start
  static absl::StatusOr<std::shared_ptr<const CublasLt>> open(std::shared_ptr<const Context> context,
                                                              const std::string& path = "");
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

  // OK, or an error that names the call and cuBLAS's own name of the status. RESOURCE_EXHAUSTED: no memory;
  // UNIMPLEMENTED: it has no algorithm for this; INTERNAL: all else.
  absl::Status check(cublasStatus_t status, const char* call) const;

#define PACELINE_CUBLASLT_MEMBER(call) decltype(&::call) call = nullptr;
  struct Calls {
    PACELINE_CUBLASLT_CALLS(PACELINE_CUBLASLT_MEMBER)
  };
#undef PACELINE_CUBLASLT_MEMBER
  const Calls& calls() const {
    return calls_;
  }
  cublasLtHandle_t handle() const {
    return handle_;
  }
  const std::shared_ptr<const Context>& context() const {
    return context_;
  }

 private:
  explicit CublasLt(std::shared_ptr<const Context> context) : context_(std::move(context)) {}

  std::shared_ptr<const Context> context_;
  Calls calls_;
  cublasLtHandle_t handle_ = nullptr;
};

}  // namespace paceline::cuda

#include "runtime/cuda/cublaslt.h"

#include <array>
#include <utility>

#include "base/status.h"
#include "base/text.h"
#include "runtime/cuda/shared_object.h"

namespace paceline::cuda {

namespace {

constexpr char kCublasLtLibrary[] = "libcublasLt.so.13";
constexpr std::size_t kMajor = 13;

// One that is missing and one that is another are mended alike.
absl::Status unusable(const absl::Status& why) {
  return absl::Status(why.code(),
                      str_cat("NVIDIA's matrix products can't be used: ", why.message(),
                              "; install the CUDA 13 toolkit, or the wheel nvidia-cublas with its "
                              "folder in LD_LIBRARY_PATH"));
}

absl::Status find_cublas_calls(const SharedObject& library, CublasLt::Calls& calls) {
#define PACELINE_CUBLASLT_FIND(call) PL_RETURN_IF_ERROR(library.find(#call, calls.call));
  PACELINE_CUBLASLT_CALLS(PACELINE_CUBLASLT_FIND)
#undef PACELINE_CUBLASLT_FIND
  return absl::OkStatus();
}

absl::StatusCode code_of_cublas(cublasStatus_t status) {
  switch (status) {
    case CUBLAS_STATUS_ALLOC_FAILED:
      return absl::StatusCode::kResourceExhausted;
    case CUBLAS_STATUS_NOT_SUPPORTED:
    case CUBLAS_STATUS_ARCH_MISMATCH:
      return absl::StatusCode::kUnimplemented;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<const CublasLt>> CublasLt::open(std::shared_ptr<const Context> context,
                                                               const std::string& path) {
  const std::array names{path.empty() ? std::string(kCublasLtLibrary) : path};
  const absl::StatusOr<SharedObject> library = SharedObject::open(names);
  if (!library.ok()) return unusable(library.status());
  std::shared_ptr<CublasLt> made(new CublasLt(std::move(context)));
  if (const absl::Status found = find_cublas_calls(*library, made->calls_); !found.ok())
    return unusable(found);
  const std::size_t version = made->calls_.cublasLtGetVersion();  // 130002: 13.0.2
  if (version / 10000 != kMajor) {
    return unusable(
        absl::FailedPreconditionError(str_cat(library->path(), " is cuBLASLt ", version / 10000, ".",
                                              version / 100 % 100, ", and ", kMajor, " is needed")));
  }
  PL_RETURN_IF_ERROR(made->context_->enter());
  PL_RETURN_IF_ERROR(made->check(made->calls_.cublasLtCreate(&made->handle_), "cublasLtCreate"));
  return made;
}

CublasLt::~CublasLt() {
  if (handle_ != nullptr && context_->enter().ok()) calls_.cublasLtDestroy(handle_);
}

absl::Status CublasLt::check(cublasStatus_t status, const char* call) const {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  const char* const name = calls_.cublasLtGetStatusName(status);
  return absl::Status(
      code_of_cublas(status),
      str_cat(call, ": ", name != nullptr ? name : "an unknown status", " (", static_cast<int>(status), ")"));
}

}  // namespace paceline::cuda

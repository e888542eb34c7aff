#include "runtime/nccl/library.h"

#include <array>

#include "base/status.h"
#include "base/text.h"
#include "runtime/cuda/shared_object.h"

namespace paceline::nccl {

namespace {

constexpr char kLibrary[] = "libnccl.so.2";
constexpr char kInstall[] =
    "install NCCL 2.28.9: the package libnccl2, or the wheel nvidia-nccl-cu13 with its folder in "
    "LD_LIBRARY_PATH";

// One that is missing and one that is another are mended alike.
absl::Status unusable(const absl::Status& why) {
  return absl::Status(why.code(), str_cat("NCCL can't be used: ", why.message(), "; ", kInstall));
}

template <typename Call>
absl::Status find(const cuda::SharedObject& library, const char* symbol, Call& call) {
  PL_ASSIGN_OR_RETURN(void* const found, library.find(symbol));
  call = reinterpret_cast<Call>(found);
  return absl::OkStatus();
}

absl::Status find_calls(const cuda::SharedObject& library, Library::Calls& calls) {
#define PACELINE_NCCL_FIND(call) PL_RETURN_IF_ERROR(find(library, #call, calls.call));
  PACELINE_NCCL_CALLS(PACELINE_NCCL_FIND)
#undef PACELINE_NCCL_FIND
  return absl::OkStatus();
}

const char* result_name(ncclResult_t result) {
  switch (result) {
    case ncclSuccess:
      return "ncclSuccess";
    case ncclUnhandledCudaError:
      return "ncclUnhandledCudaError";
    case ncclSystemError:
      return "ncclSystemError";
    case ncclInternalError:
      return "ncclInternalError";
    case ncclInvalidArgument:
      return "ncclInvalidArgument";
    case ncclInvalidUsage:
      return "ncclInvalidUsage";
    case ncclRemoteError:
      return "ncclRemoteError";
    case ncclInProgress:
      return "ncclInProgress";
    case ncclNumResults:
      break;
  }
  return "an unknown result";
}

absl::StatusCode code_of(ncclResult_t result) {
  switch (result) {
    case ncclRemoteError:
    case ncclSystemError:
      return absl::StatusCode::kUnavailable;
    case ncclInvalidArgument:
    case ncclInvalidUsage:
      return absl::StatusCode::kInvalidArgument;
    default:
      return absl::StatusCode::kInternal;
  }
}

}  // namespace

std::string version_text(int version) {
  // Before 2.9: 2804 is 2.8.4.
  return version < 10000 ? str_cat(version / 1000, ".", version % 1000 / 100, ".", version % 100)
                         : str_cat(version / 10000, ".", version % 10000 / 100, ".", version % 100);
}

absl::Status check_version(int version) {
  const auto refuse = [&](const char* why) {
    return absl::FailedPreconditionError(
        str_cat("NCCL ", version_text(version), " is refused: ", why, "; ", kInstall));
  };
  if (version < kLeastVersion) return refuse("2.27.3 is the oldest that will do");
  if (version >= 30000) return refuse("it is of another major version");
  if (version >= kFirstRefused && version <= kLastRefused)
    return refuse("from 2.28.3 to 2.28.8, communicators crash or hang when they end");
  return absl::OkStatus();
}

std::optional<ncclDataType_t> nccl_type(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return ncclFloat32;
    case DType::kF64:
      return ncclFloat64;
    case DType::kBF16:
      return ncclBfloat16;
    case DType::kF16:
      return ncclFloat16;
    case DType::kI32:
      return ncclInt32;
    case DType::kI64:
      return ncclInt64;
  }
  return std::nullopt;
}

ncclRedOp_t nccl_op(collective::ReduceOp op) {
  switch (op) {
    case collective::ReduceOp::kSum:
      return ncclSum;
    case collective::ReduceOp::kMean:
      return ncclAvg;
    case collective::ReduceOp::kMin:
      return ncclMin;
    case collective::ReduceOp::kMax:
      return ncclMax;
  }
  return ncclSum;
}

absl::StatusOr<std::shared_ptr<const Library>> Library::open(const std::string& path) {
  const std::array names{path.empty() ? std::string(kLibrary) : path};
  const absl::StatusOr<cuda::SharedObject> library = cuda::SharedObject::open(names);
  if (!library.ok()) return unusable(library.status());
  const std::shared_ptr<Library> made(new Library);
  // The version first: an older one lacks some of the calls, and that would be told instead.
  decltype(&::ncclGetVersion) get_version = nullptr;
  if (const absl::Status found = find(*library, "ncclGetVersion", get_version); !found.ok())
    return unusable(found);
  if (get_version(&made->version_) != ncclSuccess)
    return absl::FailedPreconditionError(str_cat(library->path(), " does not tell its version; ", kInstall));
  PL_RETURN_IF_ERROR(with_context(check_version(made->version_), library->path()));
  if (const absl::Status found = find_calls(*library, made->calls_); !found.ok()) return unusable(found);
  (void)find(*library, "ncclCommInitRankScalable", made->calls_.ncclCommInitRankScalable);
  (void)find(*library, "ncclCommShrink", made->calls_.ncclCommShrink);
  (void)find(*library, "ncclCommRevoke", made->calls_.ncclCommRevoke);
  return made;
}

absl::Status Library::check(ncclResult_t result, const char* call) const {
  if (result == ncclSuccess || result == ncclInProgress) return absl::OkStatus();
  const char* const words = calls_.ncclGetErrorString(result);
  const char* const last = calls_.ncclGetLastError(nullptr);
  std::string text = str_cat(call, ": ", result_name(result), " (", static_cast<int>(result), ")");
  if (words != nullptr) text += str_cat(": ", words);
  if (last != nullptr && *last != '\0') text += str_cat("; ", last);
  return absl::Status(code_of(result), text);
}

}  // namespace paceline::nccl

#pragma once

// NCCL (libnccl.so.2) by its C interface, opened at run time. Names, arguments and results are those of
// nccl.h. Thread-safe.

#include <nccl.h>

#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/dtype.h"
#include "runtime/collective/communicator.h"

namespace paceline::nccl {

// Versions as ncclGetVersion tells them: 22809 is 2.28.9.
// Before 2.27.3 a communicator can't be shrunk, and aborts of non-blocking ones are what NVIDIA mended most.
inline constexpr int kLeastVersion = 22703;
// From 2.28.3 to 2.28.8 ends of communicators crash, or hang where threads of NCCL pass each other.
inline constexpr int kFirstRefused = 22803, kLastRefused = 22808;

// OK, or FAILED_PRECONDITION with the reason and what to install. Pure.
absl::Status check_version(int version);
std::string version_text(int version);

// NCCL's own; nothing where it has none. Pure.
std::optional<ncclDataType_t> nccl_type(DType dtype);
ncclRedOp_t nccl_op(collective::ReduceOp op);

// clang-format off
#define PACELINE_NCCL_CALLS(X)                                                                   \
  X(ncclGetUniqueId) X(ncclCommInitRankConfig)                                                   \
  X(ncclCommFinalize) X(ncclCommDestroy) X(ncclCommAbort) X(ncclCommGetAsyncError)               \
  X(ncclGetErrorString) X(ncclGetLastError) X(ncclGroupStart) X(ncclGroupEnd)                    \
  X(ncclReduce) X(ncclBroadcast) X(ncclAllReduce) X(ncclReduceScatter) X(ncclAllGather)
// clang-format on

class Library {
 public:
  // Opens libnccl.so.2 (or `path`). Errors:
  //   NOT_FOUND            there is none; the message says how to get it
  //   FAILED_PRECONDITION  it can't be loaded, is not NCCL, or of a version that check_version refuses
  static absl::StatusOr<std::shared_ptr<const Library>> open(const std::string& path = "");

  // OK (also for ncclInProgress), or an error that names the call, the result, its words and NCCL's last ones
  // on this thread. UNAVAILABLE: a peer or the network (ncclRemoteError, ncclSystemError); INVALID_ARGUMENT:
  // ncclInvalidArgument, ncclInvalidUsage; INTERNAL: all else.
  absl::Status check(ncclResult_t result, const char* call) const;

  int version() const { return version_; }

#define PACELINE_NCCL_MEMBER(call) decltype(&::call) call = nullptr;
  struct Calls {
    PACELINE_NCCL_CALLS(PACELINE_NCCL_MEMBER)
    // Where the library has them.
    decltype(&::ncclCommInitRankScalable) ncclCommInitRankScalable = nullptr;  // since 2.23.4
    decltype(&::ncclCommShrink) ncclCommShrink = nullptr;                      // since 2.27.3
    decltype(&::ncclCommRevoke) ncclCommRevoke = nullptr;                      // since 2.28.7, so 2.28.9
  };
#undef PACELINE_NCCL_MEMBER
  const Calls& calls() const {
    return calls_;
  }

 private:
  Library() = default;

  Calls calls_;
  int version_ = 0;
};

}  // namespace paceline::nccl

#include "runtime/collective/arguments.h"

#include "base/text.h"

namespace paceline::collective {

const char* kind_name(Kind kind) {
  switch (kind) {
    case Kind::kAllReduce:
      return "all_reduce";
    case Kind::kReduceScatter:
      return "reduce_scatter";
    case Kind::kAllGather:
      return "all_gather";
    case Kind::kBroadcast:
      return "broadcast";
    case Kind::kBarrier:
      return "barrier";
  }
  return "?";
}

std::uint64_t Call::fingerprint() const {
  return static_cast<std::uint64_t>(kind) | static_cast<std::uint64_t>(dtype) << 8 |
         static_cast<std::uint64_t>(op) << 16 | static_cast<std::uint64_t>(algorithm) << 24 |
         static_cast<std::uint64_t>(root) << 32;
}

absl::Status check_call(const Call& call, int world_size) {
  const std::size_t element = dtype_bytes(call.dtype);
  if (element == 0)
    return absl::InvalidArgumentError(str_cat(kind_name(call.kind), ": unknown element type"));
  if (call.count > kMaxBytes / element) {
    return absl::InvalidArgumentError(str_cat(describe(call), ": more than ", kMaxBytes, " bytes"));
  }
  if (call.count > 0 && call.data == nullptr)
    return absl::InvalidArgumentError(str_cat(describe(call), ": no data"));
  if (reinterpret_cast<std::uintptr_t>(call.data) % element != 0) {
    return absl::InvalidArgumentError(
        str_cat(describe(call), ": the data must be aligned to ", element, " bytes"));
  }
  if (call.root < 0 || call.root >= world_size) {
    return absl::InvalidArgumentError(
        str_cat(describe(call), ": root ", call.root, " of ", world_size, " ranks"));
  }
  return absl::OkStatus();
}

std::string describe(const Call& call) {
  if (call.kind == Kind::kBarrier) return "barrier";
  return str_cat(kind_name(call.kind), " of ", call.count, " ", dtype_name(call.dtype));
}

std::string name_rank(int rank, const std::string& member) {
  return member.empty() ? str_cat("rank ", rank) : str_cat("rank ", rank, " (", member, ")");
}

}  // namespace paceline::collective

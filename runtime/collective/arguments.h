#pragma once

// What all communicators check of a call before they begin. Pure.

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "base/dtype.h"
#include "runtime/collective/communicator.h"

namespace paceline::collective {

enum class Kind : std::uint8_t { kAllReduce = 1, kReduceScatter, kAllGather, kBroadcast, kBarrier };
const char* kind_name(Kind kind);

// One call, as every rank must make it.
struct Call {
  Kind kind = Kind::kBarrier;
  std::byte* data = nullptr;
  std::size_t count = 0;
  DType dtype = DType::kF32;
  ReduceOp op = ReduceOp::kSum;
  Algorithm algorithm = Algorithm::kAuto;
  int root = 0;

  std::size_t bytes() const { return count * dtype_bytes(dtype); }
  // Equal on two ranks that make the same call, but for count.
  std::uint64_t fingerprint() const;
};

// INVALID_ARGUMENT: unaligned or missing data, a root outside the world, more than kMaxBytes.
absl::Status check_call(const Call& call, int world_size);
inline constexpr std::size_t kMaxBytes = std::size_t{1} << 46;

// "all_reduce of 100 F32"
std::string describe(const Call& call);

// "rank 2 (worker-1)", or "rank 2" without a name.
std::string name_rank(int rank, const std::string& member);

}  // namespace paceline::collective

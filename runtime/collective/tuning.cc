#include "runtime/collective/tuning.h"

namespace paceline::collective {

namespace {

struct Row {
  int world;           // up to this many ranks
  std::size_t whole;   // up to so many bytes: direct, whole
  std::size_t blocks;  // up to so many: direct by blocks; above: ring
};

// TCP, loopback. The rows of 4 ranks and more are estimates from runs with more ranks than cores;
// `benchmarks/allreduce --tune --ranks 4 8 16` prints what is measured.
constexpr Row kRows[] = {
    {2, std::size_t{16} << 10, std::size_t{1} << 20},
    {4, std::size_t{8} << 10, kMaxBytes},
    {8, std::size_t{4} << 10, std::size_t{8} << 20},
    {kFullMesh, std::size_t{1} << 10, std::size_t{1} << 20},
};

bool rounds_at_every_hop(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16;
}

}  // namespace

Method stream_method(const Call& call, int world_size) {
  const bool mesh = world_size <= kFullMesh;
  const Row* row = &kRows[0];
  while (mesh && row->world < world_size) ++row;
  switch (call.algorithm) {
    case Algorithm::kRing:
      return Method::kRing;
    case Algorithm::kRecursiveDoubling:
      return Method::kRecursiveDoubling;
    case Algorithm::kHalvingDoubling:
      return Method::kHalvingDoubling;
    case Algorithm::kDirect:
      if (!mesh) return Method::kRing;  // not every pair is linked
      return call.bytes() <= row->whole ? Method::kDirectWhole : Method::kDirectBlocks;
    case Algorithm::kDirectWhole:
      return mesh ? Method::kDirectWhole : Method::kRing;
    case Algorithm::kDirectBlocks:
      return mesh ? Method::kDirectBlocks : Method::kRing;
    case Algorithm::kAuto:
      break;
  }
  if (!mesh) return call.bytes() <= (std::size_t{32} << 10) ? Method::kRecursiveDoubling : Method::kRing;
  if (call.bytes() <= row->whole) return Method::kDirectWhole;
  // Between two ranks the ring has one hop, and rounds once as well.
  if (call.bytes() <= row->blocks || (world_size > 2 && rounds_at_every_hop(call.dtype)))
    return Method::kDirectBlocks;
  return Method::kRing;
}

}  // namespace paceline::collective

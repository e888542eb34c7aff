#pragma once

// Which algorithm for which message: `benchmarks/allreduce --tune` measures all and prints the rows. Pure
// data and choice.

#include <cstddef>

#include "runtime/collective/arguments.h"
#include "runtime/collective/schedule.h"

namespace paceline::collective {

// Up to here, ranks that share memory all reduce everything themselves: one phase instead of two or three.
constexpr std::size_t shared_one_shot_bytes(int world_size) {
  return world_size <= 4 ? std::size_t{64} << 10 : std::size_t{32} << 10;
}

// Over sockets: the piece of a block in which a large exchange is pipelined.
constexpr std::size_t stream_piece_bytes(int world_size) {
  return world_size <= 2 ? std::size_t{512} << 10 : std::size_t{256} << 10;
}

// Over sockets: the method for an all-reduce, the same on all ranks. An explicit algorithm is followed. With
// kAuto, fp16 and bf16 take a direct method wherever every pair is linked, so that their sums are rounded
// once.
Method stream_method(const Call& call, int world_size);

}  // namespace paceline::collective

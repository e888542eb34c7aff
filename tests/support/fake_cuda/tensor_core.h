#pragma once

// What runtime/cuda/kernels/tensor_core.h is made of on the emulated GPU. Words go between the lanes of a
// warp as the PTX ISA (mma.m16n8k16, ldmatrix) lays them out.
//
// Copies are as late and as early as they may be: what they overwrite is NaN from the moment that they begin,
// and what they bring is there from the wait on, and not before. So a copy into rows that others still read,
// a missing wait and a missing barrier all give NaN, and ThreadSanitizer sees both moments.

#include <cstddef>
#include <cstdint>

#include "tests/support/fake_cuda/block.h"

namespace paceline::fake_cuda {

struct alignas(16) TileRow {
  std::uint16_t at[8];
};

struct TileLoad {
  TileRow row;
  std::uint32_t words[4];
};
void distribute(void* const (&lanes)[kLanes]);
void distribute_transposed(void* const (&lanes)[kLanes]);

// Each row is read by the lane that gives its address.
inline void load_tiles(const TileRow* row, std::uint32_t (&tiles)[4], bool transposed) {
  TileLoad load{*row, {}};
  meet(&load, transposed ? &distribute_transposed : &distribute, "load tiles");
  for (int i = 0; i < 4; ++i) tiles[i] = load.words[i];
}

struct Multiplication {
  float sum[4];
  std::uint32_t a[4], b[2];
};
void multiply(void* const (&lanes)[kLanes]);

inline void multiply_add(float (&sum)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  Multiplication own{{sum[0], sum[1], sum[2], sum[3]}, {a[0], a[1], a[2], a[3]}, {b0, b1}};
  meet(&own, &multiply, "multiply");
  for (int i = 0; i < 4; ++i) sum[i] = own.sum[i];
}

template <int kBytes>
struct alignas(kBytes) CopyUnit {
  std::uint32_t at[kBytes / 4];
};
template <int kBytes>
void copy_begin(std::byte* to, const void* from, bool there) {
  auto* const unit = reinterpret_cast<CopyUnit<kBytes>*>(to);
  for (std::uint32_t& word : unit->at) word = ~0U;
  begin_copy({to, there ? from : nullptr, kBytes});
}
inline void copies_commit() {
  commit_copies();
}
template <int kBytes>
void land(const Copy& copy) {
  const auto* const from = static_cast<const CopyUnit<kBytes>*>(copy.from);
  *static_cast<CopyUnit<kBytes>*>(copy.to) = from == nullptr ? CopyUnit<kBytes>{} : *from;
}
inline void copies_wait(unsigned groups) {
  Copy copy;
  while (next_copy(groups, copy)) {
    if (copy.bytes == 16) {
      land<16>(copy);
    } else if (copy.bytes == 8) {
      land<8>(copy);
    } else {
      land<4>(copy);
    }
  }
}

}  // namespace paceline::fake_cuda

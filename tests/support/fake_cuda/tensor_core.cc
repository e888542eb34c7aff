#include "tests/support/fake_cuda/tensor_core.h"

#include <bit>

// Like block.cc not instrumented for ThreadSanitizer: what lanes give each other here needs no barrier.

namespace paceline::fake_cuda {

namespace {

constexpr unsigned kTile = 8;

std::uint32_t word(std::uint16_t low, std::uint16_t high) {
  return low | static_cast<std::uint32_t>(high) << 16U;
}
// Of a bf16.
float low(std::uint32_t word) {
  return std::bit_cast<float>(word << 16U);
}
float high(std::uint32_t word) {
  return std::bit_cast<float>(word & 0xffff0000U);
}

}  // namespace

void distribute(void* const (&lanes)[kLanes]) {
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (unsigned tile = 0; tile < 4; ++tile) {
      const TileRow& row = static_cast<const TileLoad*>(lanes[tile * kTile + lane / 4])->row;
      static_cast<TileLoad*>(lanes[lane])->words[tile] = word(row.at[lane % 4 * 2], row.at[lane % 4 * 2 + 1]);
    }
  }
}

void distribute_transposed(void* const (&lanes)[kLanes]) {
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    for (unsigned tile = 0; tile < 4; ++tile) {
      const auto row = [&](unsigned r) -> const TileRow& {
        return static_cast<const TileLoad*>(lanes[tile * kTile + r])->row;
      };
      static_cast<TileLoad*>(lanes[lane])->words[tile] =
          word(row(lane % 4 * 2).at[lane / 4], row(lane % 4 * 2 + 1).at[lane / 4]);
    }
  }
}

void multiply(void* const (&lanes)[kLanes]) {
  float a[16][16], b[16][8];
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    const auto& own = *static_cast<const Multiplication*>(lanes[lane]);
    const unsigned group = lane / 4, pair = lane % 4 * 2;
    for (unsigned i = 0; i < 4; ++i) {
      a[group + i % 2 * 8][pair + i / 2 * 8] = low(own.a[i]);
      a[group + i % 2 * 8][pair + i / 2 * 8 + 1] = high(own.a[i]);
    }
    for (unsigned i = 0; i < 2; ++i) {
      b[pair + i * 8][group] = low(own.b[i]);
      b[pair + i * 8 + 1][group] = high(own.b[i]);
    }
  }
  for (unsigned lane = 0; lane < kLanes; ++lane) {
    auto& own = *static_cast<Multiplication*>(lanes[lane]);
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = lane / 4 + i / 2 * 8, column = lane % 4 * 2 + i % 2;
      for (unsigned k = 0; k < 16; ++k) own.sum[i] += a[row][k] * b[k][column];
    }
  }
}

}  // namespace paceline::fake_cuda

#pragma once

// Pooling's loops for one SIMD level: included by one source file for each level, which is compiled for that
// level alone. Everything here is local to that file. Blocks of 16 or 8 channels are worked on as vectors
// (the compilers' vector extension), row-major samples one by one.

#include <cstring>

#include "runtime/tensor/cpu/pool.h"

namespace paceline::tensor::cpu {

struct PoolLoops {
  void (*pool)(const PoolShape& shape, const float* x, float* y, std::uint8_t* places);
  // REQUIRES: windows that do not overlap and cover x.
  void (*tiles)(const PoolShape& shape, const float* g, const std::uint8_t* places, const float* y,
                float* dx);
};
const PoolLoops& portable_pool_loops();
const PoolLoops& avx2_pool_loops();    // x86 builds only
const PoolLoops& avx512_pool_loops();  // x86 builds only

namespace {

template <int kLanes>
struct Vectors {
  typedef float Floats __attribute__((vector_size(kLanes * 4)));
  typedef std::int32_t Ints __attribute__((vector_size(kLanes * 4)));
  typedef std::uint8_t Bytes __attribute__((vector_size(kLanes)));
};

template <typename V, typename T>
inline void load(V& vector, const T* from) {
  std::memcpy(&vector, from, sizeof(V));
}
template <typename V, typename T>
inline void store(const V& vector, T* to) {
  std::memcpy(to, &vector, sizeof(V));
}

// One window of kLanes channels: `x` is its upper left corner.
template <int kLanes>
inline void pool_window(const PoolShape& s, const float* x, float* y, std::uint8_t* places) {
  using V = Vectors<kLanes>;
  typename V::Floats best;
  typename V::Ints place{};
  load(best, x);
  for (std::size_t i = 0; i < s.window; ++i) {
    for (std::size_t j = i == 0 ? 1 : 0; j < s.window; ++j) {
      typename V::Floats candidate;
      load(candidate, x + (i * s.width + j) * s.inner);
      const typename V::Ints here = typename V::Ints{} + static_cast<std::int32_t>(i * s.window + j);
      place = candidate > best ? here : place;
      best = candidate > best ? candidate : best;
      // NaN is larger than everything.
      place = candidate != candidate ? here : place;
      best = candidate != candidate ? candidate : best;
    }
  }
  if (s.relu) best = best < typename V::Floats{} ? typename V::Floats{} : best;
  store(best, y);
  if (places != nullptr) store(__builtin_convertvector(place, typename V::Bytes), places);
}

inline void pool_window_scalar(const PoolShape& s, const float* x, float* y, std::uint8_t* places) {
  float best = x[0];
  std::size_t place = 0;
  for (std::size_t p = 1; p < s.window * s.window; ++p) {
    const float candidate = x[(p / s.window * s.width + p % s.window) * s.inner];
    if (candidate > best || candidate != candidate) {
      best = candidate;
      place = p;
    }
  }
  *y = s.relu && best < 0 ? 0.0F : best;
  if (places != nullptr) *places = static_cast<std::uint8_t>(place);
}

// kLanes 0: one by one.
template <int kLanes>
inline void pool_all(const PoolShape& s, const float* x, float* y, std::uint8_t* places) {
  constexpr std::size_t kStep = kLanes == 0 ? 1 : kLanes;
  for (std::size_t o = 0; o < s.outer; ++o) {
    const float* plane = x + o * s.height * s.width * s.inner;
    for (std::size_t i = 0; i < s.out_height; ++i) {
      for (std::size_t j = 0; j < s.out_width; ++j) {
        const float* corner = plane + (i * s.width + j) * s.stride * s.inner;
        for (std::size_t c = 0; c < s.inner; c += kStep) {
          if constexpr (kLanes == 0) {
            pool_window_scalar(s, corner + c, y, places);
          } else {
            pool_window<kLanes>(s, corner + c, y, places);
          }
          y += kStep;
          if (places != nullptr) places += kStep;
        }
      }
    }
  }
}

// One window's gradient to every element of the window.
template <int kLanes>
inline void spread(const PoolShape& s, const float* g, const std::uint8_t* places, const float* y,
                   float* corner) {
  using V = Vectors<kLanes>;
  typename V::Floats gradient;
  typename V::Bytes bytes;
  load(gradient, g);
  load(bytes, places);
  const typename V::Ints place = __builtin_convertvector(bytes, typename V::Ints);
  const typename V::Floats zero{};
  if (y != nullptr) {
    typename V::Floats value;
    load(value, y);
    gradient = value > zero ? gradient : zero;
  }
  for (std::size_t i = 0; i < s.window; ++i) {
    for (std::size_t j = 0; j < s.window; ++j) {
      const typename V::Ints here = place == static_cast<std::int32_t>(i * s.window + j);
      const typename V::Floats part = here ? gradient : zero;
      store(part, corner + (i * s.width + j) * s.inner);
    }
  }
}

inline void spread_scalar(const PoolShape& s, float g, std::size_t place, bool passes, float* corner) {
  for (std::size_t p = 0; p < s.window * s.window; ++p) {
    corner[(p / s.window * s.width + p % s.window) * s.inner] = passes && place == p ? g : 0.0F;
  }
}

// Windows that do not overlap and cover x: every element of dx is written once.
template <int kLanes>
inline void backward_tiles(const PoolShape& s, const float* g, const std::uint8_t* places, const float* y,
                           float* dx) {
  constexpr std::size_t kStep = kLanes == 0 ? 1 : kLanes;
  for (std::size_t o = 0; o < s.outer; ++o) {
    float* plane = dx + o * s.height * s.width * s.inner;
    for (std::size_t i = 0; i < s.out_height; ++i) {
      for (std::size_t j = 0; j < s.out_width; ++j) {
        float* corner = plane + (i * s.width + j) * s.window * s.inner;
        for (std::size_t c = 0; c < s.inner; c += kStep) {
          if constexpr (kLanes == 0) {
            spread_scalar(s, *g, *places, y == nullptr || *y > 0, corner + c);
          } else {
            spread<kLanes>(s, g, places, y, corner + c);
          }
          g += kStep;
          places += kStep;
          if (y != nullptr) y += kStep;
        }
      }
    }
  }
}

inline void pool_any(const PoolShape& s, const float* x, float* y, std::uint8_t* places) {
  if (s.inner % 16 == 0) return pool_all<16>(s, x, y, places);
  if (s.inner % 8 == 0) return pool_all<8>(s, x, y, places);
  pool_all<0>(s, x, y, places);
}

inline void tiles_any(const PoolShape& s, const float* g, const std::uint8_t* places, const float* y,
                      float* dx) {
  if (s.inner % 16 == 0) return backward_tiles<16>(s, g, places, y, dx);
  if (s.inner % 8 == 0) return backward_tiles<8>(s, g, places, y, dx);
  backward_tiles<0>(s, g, places, y, dx);
}

}  // namespace

}  // namespace paceline::tensor::cpu

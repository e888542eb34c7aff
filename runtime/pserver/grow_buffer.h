#pragma once

// Memory that is taken again and again, for about as much each time: it grows by powers of two and never
// shrinks, and nothing is written into it. One thread.

#include <bit>
#include <cstddef>
#include <memory>
#include <span>

namespace paceline::pserver {

template <typename T>
class GrowBuffer {
 public:
  // Room for `count`, whose values are anything. What was there before stays only where nothing had to grow.
  std::span<T> take(std::size_t count) {
    if (count > capacity_) {
      capacity_ = std::bit_ceil(count);
      memory_ = std::make_unique_for_overwrite<T[]>(capacity_);
    }
    size_ = count;
    return all();
  }
  std::span<T> all() { return {memory_.get(), size_}; }
  std::span<const T> all() const { return {memory_.get(), size_}; }

 private:
  std::unique_ptr<T[]> memory_;
  std::size_t capacity_ = 0, size_ = 0;
};

}  // namespace paceline::pserver

#pragma once

// Bytes at a multiple of 64, zeros at first. Movable.

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>

#include "absl/status/status.h"

namespace paceline::tensor::cpu {

class AlignedBuffer {
 public:
  static constexpr std::size_t kAlignment = 64;

  AlignedBuffer() = default;
  // std::bad_alloc where memory is short.
  explicit AlignedBuffer(std::size_t bytes)
      : data_(static_cast<std::byte*>(::operator new (bytes + 1, std::align_val_t{kAlignment}))) {
    std::memset(data_.get(), 0, bytes);
  }
  std::byte* data() const { return data_.get(); }

 private:
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete (memory, std::align_val_t{kAlignment}); }
  };
  std::unique_ptr<std::byte, Free> data_;
};

// The error where there is no memory for `bytes` of `what`: it says what is free of the memory,
// or left of the process's address space.
absl::Status no_memory(std::size_t bytes, std::string_view what);

}  // namespace paceline::tensor::cpu

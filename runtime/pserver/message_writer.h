#pragma once

// Writes a message's fields one behind the other, as they lie in memory (little-endian: frame.cc asserts it),
// over what the buffer held. Pure.

#include <cstring>
#include <span>
#include <string>

#include "runtime/pserver/messages.h"

namespace paceline::pserver {

class Writer {
 public:
  explicit Writer(Buffer& buffer) : buffer_(buffer) { buffer_.clear(); }
  template <typename Number>
  void put(Number value) {
    append(&value, sizeof(value));
  }
  void put(const std::string& text) {
    put(static_cast<std::uint32_t>(text.size()));
    append(text.data(), text.size());
  }
  template <typename Number>
  void put_all(std::span<const Number> values) {
    append(values.data(), values.size_bytes());
  }

 private:
  void append(const void* bytes, std::size_t count) {
    const std::size_t at = buffer_.size();
    buffer_.resize(at + count);
    if (count > 0) std::memcpy(buffer_.data() + at, bytes, count);
  }
  Buffer& buffer_;
};

}  // namespace paceline::pserver

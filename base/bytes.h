#pragma once

// Bytes on a wire or in a file: little-endian, fixed width, bounds checked. Values; one thread at a time.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"

namespace paceline {

// Appends to a growing buffer.
class ByteWriter {
 public:
  void u8(std::uint8_t value);
  void u16(std::uint16_t value);
  void u32(std::uint32_t value);
  void u64(std::uint64_t value);
  void bytes(std::span<const std::byte> value);
  void text(std::string_view value);  // u32 length, then the bytes

  const std::vector<std::byte>& data() const { return data_; }
  std::vector<std::byte> take() { return std::move(data_); }

 private:
  std::vector<std::byte> data_;
};

// Reads from a span that it does not own. The first read past the end makes `ok()` false for good; reads then
// return zeros and empty texts, so that a parser may check once, at the end.
class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> data) : data_(data) {}
  std::uint8_t u8();
  std::uint16_t u16();
  std::uint32_t u32();
  std::uint64_t u64();
  std::span<const std::byte> bytes(std::size_t count);
  // A text of at most `limit` bytes; a longer one makes ok() false.
  std::string_view text(std::size_t limit);

  bool ok() const { return ok_; }
  std::size_t position() const { return position_; }
  std::size_t remaining() const { return data_.size() - position_; }

 private:
  std::uint64_t integer(int width);
  std::span<const std::byte> data_;
  std::size_t position_ = 0;
  bool ok_ = true;
};

}  // namespace paceline

#include "base/bytes.h"

namespace paceline {

namespace {
void append(std::vector<std::byte>& out, std::uint64_t value, int width) {
  for (int i = 0; i < width; ++i) out.push_back(static_cast<std::byte>(value >> (8 * i)));
}
}  // namespace

void ByteWriter::u8(std::uint8_t value) {
  append(data_, value, 1);
}
void ByteWriter::u16(std::uint16_t value) {
  append(data_, value, 2);
}
void ByteWriter::u32(std::uint32_t value) {
  append(data_, value, 4);
}
void ByteWriter::u64(std::uint64_t value) {
  append(data_, value, 8);
}
void ByteWriter::bytes(std::span<const std::byte> value) {
  data_.insert(data_.end(), value.begin(), value.end());
}
void ByteWriter::text(std::string_view value) {
  u32(static_cast<std::uint32_t>(value.size()));
  bytes(std::as_bytes(std::span(value)));
}

std::uint64_t ByteReader::integer(int width) {
  const auto raw = bytes(static_cast<std::size_t>(width));
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < raw.size(); ++i) value |= static_cast<std::uint64_t>(raw[i]) << (8 * i);
  return value;
}

std::uint8_t ByteReader::u8() {
  return static_cast<std::uint8_t>(integer(1));
}
std::uint16_t ByteReader::u16() {
  return static_cast<std::uint16_t>(integer(2));
}
std::uint32_t ByteReader::u32() {
  return static_cast<std::uint32_t>(integer(4));
}
std::uint64_t ByteReader::u64() {
  return integer(8);
}

std::span<const std::byte> ByteReader::bytes(std::size_t count) {
  if (!ok_ || count > remaining()) {
    ok_ = false;
    return {};
  }
  const auto result = data_.subspan(position_, count);
  position_ += count;
  return result;
}

std::string_view ByteReader::text(std::size_t limit) {
  const std::uint32_t length = u32();
  if (length > limit) ok_ = false;
  const auto raw = bytes(length);
  return std::string_view(reinterpret_cast<const char*>(raw.data()), raw.size());
}

}  // namespace paceline

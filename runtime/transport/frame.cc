#include "runtime/transport/frame.h"

#include <bit>
#include <cstring>

#include "base/crc32c.h"
#include "base/status.h"

namespace paceline::transport {

static_assert(std::endian::native == std::endian::little, "the fields are written as they lie in memory");

namespace {

struct Fields {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t reserved;
  std::uint64_t generation;
  std::uint64_t operation;
  std::uint32_t call;
  std::uint32_t sequence;
  std::uint32_t length;
  std::uint32_t checksum;
};
static_assert(sizeof(Fields) == kFrameHeaderBytes);
constexpr std::size_t kChecked = offsetof(Fields, checksum);

}  // namespace

void encode(const FrameHeader& header, std::span<std::byte, kFrameHeaderBytes> bytes) {
  Fields fields{kFrameMagic,     kFrameVersion, 0, header.generation.value, header.operation, header.call,
                header.sequence, header.length, 0};
  fields.checksum = crc32c(std::as_bytes(std::span(&fields, 1)).first(kChecked));
  std::memcpy(bytes.data(), &fields, sizeof(fields));
}

absl::StatusOr<FrameHeader> decode_frame(std::span<const std::byte, kFrameHeaderBytes> bytes) {
  Fields fields;
  std::memcpy(&fields, bytes.data(), sizeof(fields));
  if (fields.magic != kFrameMagic) return absl::InvalidArgumentError("a frame with a wrong magic");
  if (fields.version != kFrameVersion)
    return absl::InvalidArgumentError(str_cat("a frame of version ", fields.version));
  if (fields.checksum != crc32c(bytes.first(kChecked)))
    return absl::InvalidArgumentError("a frame header with a wrong checksum");
  if (fields.length > kMaxFrameBytes)
    return absl::InvalidArgumentError(str_cat("a frame of ", fields.length, " bytes"));
  return FrameHeader{Generation{fields.generation}, fields.operation, fields.call, fields.sequence,
                     fields.length};
}

}  // namespace paceline::transport

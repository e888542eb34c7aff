#pragma once

// The header of every piece of data on a link (docs/protocol.md, "Data links"). Pure.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "base/ids.h"

namespace paceline::transport {

inline constexpr std::uint32_t kFrameMagic = 0x52464c50;  // "PLFR"
inline constexpr std::uint16_t kFrameVersion = 1;
inline constexpr std::size_t kFrameHeaderBytes = 40;
inline constexpr std::size_t kMaxFrameBytes = std::size_t{1} << 20;  // of payload

struct FrameHeader {
  Generation generation;
  std::uint64_t operation = 0;  // collectives since the link was made
  std::uint32_t call = 0;       // checksum of what the sender called: kind, type, reduction, count
  std::uint32_t sequence = 0;   // frames of this operation on this pair, in this direction
  std::uint32_t length = 0;     // of the payload, in bytes
  bool operator==(const FrameHeader&) const = default;
};

void encode(const FrameHeader& header, std::span<std::byte, kFrameHeaderBytes> bytes);
// INVALID_ARGUMENT: not a frame, a wrong checksum, longer than kMaxFrameBytes.
absl::StatusOr<FrameHeader> decode_frame(std::span<const std::byte, kFrameHeaderBytes> bytes);

}  // namespace paceline::transport

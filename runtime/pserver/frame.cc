#include "runtime/pserver/frame.h"

#include <bit>
#include <cstring>

#include "base/crc32c.h"
#include "base/status.h"

namespace paceline::pserver {

static_assert(std::endian::native == std::endian::little, "the fields are written as they lie in memory");

namespace {

struct Fields {
  std::uint32_t magic;
  std::uint16_t version;
  std::uint16_t kind;
  std::uint64_t generation;
  std::int64_t number;
  std::uint64_t begin;
  std::uint64_t length;
  std::int32_t rank;
  std::uint32_t reserved[4];
  std::uint32_t checksum;
};
static_assert(sizeof(Fields) == kFrameBytes);
constexpr std::size_t kChecked = offsetof(Fields, checksum);

}  // namespace

const char* kind_name(FrameKind kind) {
  static constexpr const char* kNames[] = {
      "?",        "Join",      "Begin",       "State",     "Gradient",     "Commit",   "Wish",     "Ask",
      "Snapshot", "Taken",     "Leave",       "Turn",      "Weights",      "Waiting",  "Copy",     "Copied",
      "Ready",    "Held",      "Norm",        "Log",       "Factor",       "Abort",    "PullRows", "PushRows",
      "RowIds",   "RowPlaces", "RowGradient", "SavedRows", "RowsRestored", "TakeRows", "Rows",     "Tables",
      "Loading",  "Coming"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(kLastFrameKind) + 1);
  return kind <= kLastFrameKind ? kNames[static_cast<std::size_t>(kind)] : "?";
}

std::size_t unit_of(FrameKind kind) {
  switch (kind) {
    case FrameKind::kState:
    case FrameKind::kGradient:
    case FrameKind::kWeights:
    case FrameKind::kCopied:
    case FrameKind::kRowGradient:
    case FrameKind::kRows:
      return sizeof(float);
    case FrameKind::kRowIds:
      return sizeof(std::uint64_t);
    case FrameKind::kRowPlaces:
      return sizeof(std::uint32_t);
    default:
      return 0;
  }
}

absl::Status unexpected(const FrameHeader& header) {
  return absl::InvalidArgumentError(
      str_cat("sent a ", kind_name(header.kind), " frame of ", header.length, " bytes that is not expected"));
}

void encode(const FrameHeader& header, std::span<std::byte, kFrameBytes> bytes) {
  Fields fields{.magic = kFrameMagic,
                .version = kFrameVersion,
                .kind = static_cast<std::uint16_t>(header.kind),
                .generation = header.generation.value,
                .number = header.number,
                .begin = header.begin,
                .length = header.length,
                .rank = header.rank,
                .reserved = {},
                .checksum = 0};
  fields.checksum = crc32c(std::as_bytes(std::span(&fields, 1)).first(kChecked));
  std::memcpy(bytes.data(), &fields, sizeof(fields));
}

absl::StatusOr<FrameHeader> decode_frame(std::span<const std::byte, kFrameBytes> bytes) {
  Fields fields;
  std::memcpy(&fields, bytes.data(), sizeof(fields));
  if (fields.magic != kFrameMagic) return absl::InvalidArgumentError("a frame with a wrong magic");
  if (fields.version != kFrameVersion) {
    return absl::FailedPreconditionError(
        str_cat("a frame of version ", fields.version,
                " of the parameter servers' protocol, this member speaks version ", kFrameVersion,
                ": all members of a job must run the same release of paceline"));
  }
  if (fields.checksum != crc32c(bytes.first(kChecked))) {
    return absl::InvalidArgumentError("a frame header with a wrong checksum");
  }
  if (fields.kind == 0 || fields.kind > static_cast<std::uint16_t>(kLastFrameKind)) {
    return absl::InvalidArgumentError(str_cat("a frame of unknown kind ", fields.kind));
  }
  const FrameHeader header{static_cast<FrameKind>(fields.kind),
                           Generation{fields.generation},
                           fields.rank,
                           fields.number,
                           fields.begin,
                           fields.length};
  const std::size_t unit = unit_of(header.kind);
  if (header.length > (unit > 0 ? kMaxData : kMaxMessage) || (unit > 0 && header.length % unit != 0)) {
    return absl::InvalidArgumentError(
        str_cat("a ", kind_name(header.kind), " frame of ", header.length, " bytes"));
  }
  return header;
}

}  // namespace paceline::pserver

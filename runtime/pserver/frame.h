#pragma once

// The header of everything that workers and servers say to each other (docs/protocol.md, "Parameter
// servers"). Pure.

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/ids.h"

namespace paceline::pserver {

inline constexpr std::uint32_t kFrameMagic = 0x53504c50;  // "PLPS"
// Raised with every change of a kind or a message: the members of a job are of one release.
inline constexpr std::uint16_t kFrameVersion = 3;
inline constexpr std::size_t kFrameBytes = 64;
inline constexpr std::size_t kMaxMessage = std::size_t{8} << 20;   // payload of a message
inline constexpr std::uint64_t kMaxData = std::uint64_t{1} << 44;  // payload of floats or ids

enum class FrameKind : std::uint16_t {
  // worker -> server
  kJoin = 1,  // message: who it is, and where its gradient lies
  kBegin,     // message, worker 0: what the floats that follow are
  kState,     // floats of one vector of the state: number = vector, begin in the slab
  kGradient,  // floats of a gradient: number = unit, begin in the slab
  kCommit,    // number = unit; message (to the sequencer)
  kWish,      // message, to the sequencer
  kAsk,       // what is waited for?
  kSnapshot,  // worker 0, to the sequencer: keep a copy
  kTaken,     // worker 0: the copy can go; number = version
  kLeave,     // it computes no more
  // server -> worker
  kTurn,     // message, from the sequencer; number = version
  kWeights,  // floats, or begin = where they lie in the server's arena; number = version
  kWaiting,  // message: the answer to kAsk
  kCopy,     // message: version and progress of a snapshot (sequencer); number = version
  kCopied,   // floats of one vector of a snapshot, or where they lie: number = vector, begin
  // server -> sequencer
  kReady,  // it holds what worker 0 said
  kHeld,   // a whole gradient lies here: number = unit, rank = the worker
  kNorm,   // number = version, message: sum of squares of its slices' gradient
  // sequencer -> server
  kLog,     // message: one entry
  kFactor,  // number = version, message: what the gradient is multiplied by
  // anybody
  kAbort,  // message: why this member closes
  // sparse tables: worker -> server
  kPullRows,      // message, then kRowIds: rows are asked for; number = of the pull
  kPushRows,      // message, then kRowIds: gradients of rows; number = unit, begin = 1: kRowPlaces follows
  kRowIds,        // 64-bit ids
  kRowPlaces,     // shared memory, 32 bits each: where the rows' gradients lie among those of their table
  kRowGradient,   // TCP: floats, begin among those of the push
  kSavedRows,     // message, worker 0: rows of a checkpoint; rank = table. A server's: of a snapshot
  kRowsRestored,  // worker 0: all of them have come
  kTakeRows,      // worker 0: some more rows of a snapshot; rank = table, number = version
  // sparse tables: server -> worker
  kRows,    // floats, or begin = where they lie in the server's arena; number = of the pull
  kTables,  // message: what the tables of a snapshot have; number = version
  // worker 0 -> server
  kLoading,  // it reads what the servers will begin with
  // server -> worker
  kComing,  // message, shared memory: weights that are being made; begin and number as kWeights, which
            // follows
};
inline constexpr FrameKind kLastFrameKind = FrameKind::kComing;
const char* kind_name(FrameKind kind);
// What a payload that goes straight to where it belongs is made of, in bytes; 0: it is a message.
std::size_t unit_of(FrameKind kind);
inline bool goes_straight(FrameKind kind) {
  return unit_of(kind) > 0;
}

struct FrameHeader {
  FrameKind kind = FrameKind::kJoin;
  Generation generation;
  std::int32_t rank = -1;
  std::int64_t number = 0;
  std::uint64_t begin = 0;
  std::uint64_t length = 0;  // of the payload, in bytes
  bool operator==(const FrameHeader&) const = default;
};

// INVALID_ARGUMENT: "sent a Turn frame of 86 bytes that is not expected"; a link puts its peer's name before.
absl::Status unexpected(const FrameHeader& header);

void encode(const FrameHeader& header, std::span<std::byte, kFrameBytes> bytes);
// INVALID_ARGUMENT: not a frame, a wrong checksum, an unknown kind, longer than its kind may be, half a
// float or id. FAILED_PRECONDITION: another version.
absl::StatusOr<FrameHeader> decode_frame(std::span<const std::byte, kFrameBytes> bytes);

}  // namespace paceline::pserver

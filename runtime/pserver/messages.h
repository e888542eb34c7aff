#pragma once

// The payloads of frames that are messages (docs/protocol.md, "Parameter servers"). Pure.
//
// encode() writes over what the buffer held and keeps its memory, so that nothing is allocated once it was
// large enough; decode() fills what it is given, likewise. INVALID_ARGUMENT: too short, too long, or a number
// that can't be meant.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/limits.h"
#include "runtime/pserver/client.h"
#include "runtime/pserver/frame.h"
#include "runtime/pserver/policy/policy.h"

namespace paceline::pserver {

using Buffer = std::vector<std::byte>;
using Bytes = std::span<const std::byte>;

inline constexpr int kMaxWorkers = kMaxGroupMembers;
inline constexpr std::size_t kMaxVectors = 4;  // of the optimiser
inline constexpr std::size_t kMaxVectorName = 64;
inline constexpr std::size_t kMaxDecayRanges = 1 << 18;
inline constexpr std::size_t kMaxMissing = 1 << 18;  // units not yet applied
inline constexpr std::size_t kMaxReason = 1024;

// INVALID_ARGUMENT, of the kind `what`.
absl::Status bad_message(const char* what);

struct JoinMessage {
  std::uint64_t elements = 0;
  std::uint64_t slice_bytes = 0;
  bool shared = false;
  std::uint64_t gradient = 0;  // where it lies in the worker's arena
  std::uint64_t reads = 0;     // where the worker's counts of reads lie there (read_counts.h)
  std::uint32_t tables = 0;    // fingerprint() of its sparse tables (row_messages.h)
  bool operator==(const JoinMessage&) const = default;
};

struct BeginMessage {
  std::uint64_t elements = 0;
  std::vector<std::uint64_t> decay;    // begin, end, begin, end, ...: elements that decay, ascending
  std::vector<std::string> optimizer;  // the vectors of state that follow the weights; none: zeros
  std::int64_t optimizer_steps = 0;
  PolicyStart start;
};

struct CommitMessage {
  double loss_sum = 0;
  std::int64_t samples = 0;
  Wishes wishes;
  bool operator==(const CommitMessage&) const = default;
};

// Which gradients of a worker an update counts: that of its last commit, what the servers put aside of it
// before, or both.
struct Contributor {
  std::int32_t worker = -1;
  bool last = false;
  bool aside = false;
  bool operator==(const Contributor&) const = default;
};

// One entry of the log.
struct LogEntry {
  enum class Kind : std::uint8_t { kUpdate = 1, kTurn = 2, kSnapshot = 3 };
  Kind kind = Kind::kUpdate;
  Version version = 0;       // kUpdate: that it makes; else the present one
  std::int32_t worker = -1;  // kTurn: who gets the weights
  bool keeps = false;        // kTurn: its gradient still waits for an update: put aside
  bool clips = false;        // kUpdate: the factor comes when all partial norms are known
  float scale = 1;
  double learning_rate = 0;
  std::vector<Contributor> contributors;  // kUpdate: by worker, ascending
};

// kWaiting: what one server's log waits for, if it stands still.
struct WaitingMessage {
  enum class Hold : std::uint8_t {
    kNone = 0,
    kLoading = 1,   // worker 0 has not said all that the servers begin with
    kSnapshot = 2,  // too many rows are kept until worker 0 takes them
  };
  std::int32_t rank = -1;   // the sequencer's word: whose gradient is missing, or which server; -1: nobody
  Hold hold = Hold::kNone;  // now
  // Since worker 0 moved last while it held all up. Without a hold: since the last one was over, or some of a
  // gradient, of rows or of weights came from a worker or went to one; -1: there was none of these.
  Duration idle{-1};
  bool operator==(const WaitingMessage&) const = default;
};

// kComing: where in its arena the server counts the elements that are made (read_counts.h).
struct ComingMessage {
  std::uint64_t made = 0;
  bool operator==(const ComingMessage&) const = default;
};

struct AbortMessage {
  std::int32_t code = 0;
  std::int32_t blamed = -1;
  std::string text;
};

void encode(const JoinMessage& message, Buffer& buffer);
void encode(const BeginMessage& message, Buffer& buffer);
void encode(const CommitMessage& message, Buffer& buffer);
void encode(const Wishes& message, Buffer& buffer);
void encode(const TurnResult& message, Buffer& buffer);
void encode(const SnapshotInfo& message, Buffer& buffer);
void encode(const LogEntry& message, Buffer& buffer);
void encode(const WaitingMessage& message, Buffer& buffer);
void encode(const ComingMessage& message, Buffer& buffer);
void encode(const AbortMessage& message, Buffer& buffer);
void encode(double message, Buffer& buffer);

absl::Status decode(Bytes bytes, JoinMessage& message);
absl::Status decode(Bytes bytes, BeginMessage& message);
absl::Status decode(Bytes bytes, CommitMessage& message);
absl::Status decode(Bytes bytes, Wishes& message);
absl::Status decode(Bytes bytes, TurnResult& message);
absl::Status decode(Bytes bytes, SnapshotInfo& message);
absl::Status decode(Bytes bytes, LogEntry& message);
absl::Status decode(Bytes bytes, WaitingMessage& message);
absl::Status decode(Bytes bytes, ComingMessage& message);
absl::Status decode(Bytes bytes, AbortMessage& message);
absl::Status decode(Bytes bytes, double& message);

}  // namespace paceline::pserver

#include "runtime/pserver/messages.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/bytes.h"
#include "base/status.h"
#include "runtime/pserver/message_writer.h"

namespace paceline::pserver {

namespace {

std::uint8_t bits_of(const Wishes& wishes) {
  return static_cast<std::uint8_t>((wishes.stop ? 1 : 0) | (wishes.drain ? 2 : 0) | (wishes.save ? 4 : 0) |
                                   (wishes.target_reached ? 8 : 0));
}

Wishes wishes_of(std::uint8_t bits) {
  return {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
}

std::int64_t i64(ByteReader& reader) {
  return static_cast<std::int64_t>(reader.u64());
}
double f64(ByteReader& reader) {
  return std::bit_cast<double>(reader.u64());
}
// All was there, and nothing more.
bool whole(const ByteReader& reader) {
  return reader.ok() && reader.remaining() == 0;
}

void put_units(const UnitsApplied& units, Writer& writer) {
  writer.put(units.units_per_step);
  writer.put(units.below);
  writer.put(static_cast<std::uint64_t>(units.missing.size()));
  for (const Unit unit : units.missing) writer.put(unit);
}

bool read_units(ByteReader& reader, UnitsApplied& units) {
  units.units_per_step = i64(reader);
  units.below = i64(reader);
  const std::uint64_t count = reader.u64();
  if (!reader.ok() || units.units_per_step < 0 || units.below < 0 || count > kMaxMissing ||
      count * sizeof(Unit) > reader.remaining()) {
    return false;
  }
  units.missing.resize(count);
  Unit last = -1;
  for (Unit& unit : units.missing) {
    unit = i64(reader);
    if (unit <= last || unit >= units.below) return false;
    last = unit;
  }
  return reader.ok();
}

}  // namespace

absl::Status bad_message(const char* what) {
  return absl::InvalidArgumentError(str_cat("a ", what, " message that can't be meant"));
}

void encode(const JoinMessage& message, Buffer& buffer) {
  Writer writer(buffer);
  writer.put(message.elements);
  writer.put(message.slice_bytes);
  writer.put(static_cast<std::uint8_t>(message.shared));
  writer.put(message.gradient);
  writer.put(message.reads);
  writer.put(message.tables);
}

absl::Status decode(Bytes bytes, JoinMessage& message) {
  ByteReader reader(bytes);
  message.elements = reader.u64();
  message.slice_bytes = reader.u64();
  const std::uint8_t shared = reader.u8();
  message.shared = shared == 1;
  message.gradient = reader.u64();
  message.reads = reader.u64();
  message.tables = reader.u32();
  return whole(reader) && shared <= 1 ? absl::OkStatus() : bad_message("Join");
}

void encode(const BeginMessage& message, Buffer& buffer) {
  Writer writer(buffer);
  writer.put(message.elements);
  writer.put(static_cast<std::uint32_t>(message.optimizer.size()));
  for (const std::string& name : message.optimizer) writer.put(name);
  writer.put(message.optimizer_steps);
  writer.put(message.start.step);
  writer.put(message.start.total_steps);
  put_units(message.start.units, writer);
  writer.put(static_cast<std::uint64_t>(message.decay.size()));
  for (const std::uint64_t end : message.decay) writer.put(end);
}

absl::Status decode(Bytes bytes, BeginMessage& message) {
  ByteReader reader(bytes);
  message.elements = reader.u64();
  const std::uint32_t vectors = reader.u32();
  if (vectors > kMaxVectors) return bad_message("Begin");
  message.optimizer.resize(vectors);
  for (std::string& name : message.optimizer) name = std::string(reader.text(kMaxVectorName));
  message.optimizer_steps = i64(reader);
  message.start.step = i64(reader);
  message.start.total_steps = i64(reader);
  if (!read_units(reader, message.start.units)) return bad_message("Begin");
  const std::uint64_t ends = reader.u64();
  if (!reader.ok() || ends > 2 * kMaxDecayRanges || ends % 2 != 0 ||
      ends * sizeof(std::uint64_t) != reader.remaining()) {
    return bad_message("Begin");
  }
  message.decay.resize(ends);
  for (std::uint64_t& end : message.decay) end = reader.u64();
  const bool ordered = std::is_sorted(message.decay.begin(), message.decay.end()) &&
                       (ends == 0 || message.decay.back() <= message.elements);
  const bool meant = message.elements <= kMaxData / sizeof(float) && message.optimizer_steps >= 0 &&
                     message.start.step >= 0 && message.start.total_steps >= message.start.step;
  return whole(reader) && ordered && meant ? absl::OkStatus() : bad_message("Begin");
}

void encode(const CommitMessage& message, Buffer& buffer) {
  Writer writer(buffer);
  writer.put(message.loss_sum);
  writer.put(message.samples);
  writer.put(bits_of(message.wishes));
}

absl::Status decode(Bytes bytes, CommitMessage& message) {
  ByteReader reader(bytes);
  message.loss_sum = f64(reader);
  message.samples = i64(reader);
  message.wishes = wishes_of(reader.u8());
  return whole(reader) && message.samples >= 0 ? absl::OkStatus() : bad_message("Commit");
}

void encode(const Wishes& message, Buffer& buffer) {
  Writer writer(buffer);
  writer.put(bits_of(message));
}

absl::Status decode(Bytes bytes, Wishes& message) {
  ByteReader reader(bytes);
  message = wishes_of(reader.u8());
  return whole(reader) ? absl::OkStatus() : bad_message("Wish");
}

void encode(const TurnResult& message, Buffer& buffer) {
  Writer writer(buffer);
  writer.put(static_cast<std::uint8_t>((message.finished ? 1 : 0) | (message.dropped ? 2 : 0)));
  writer.put(bits_of(message.agreed));
  writer.put(message.unit);
  writer.put(message.next);
  writer.put(message.version);
  writer.put(message.step);
  writer.put(message.updates);
  writer.put(message.gradients);
  writer.put(message.samples);
  writer.put(message.loss_sum);
  writer.put(message.learning_rate);
  writer.put(message.staleness);
}

absl::Status decode(Bytes bytes, TurnResult& message) {
  ByteReader reader(bytes);
  const std::uint8_t flags = reader.u8();
  message.finished = (flags & 1) != 0;
  message.dropped = (flags & 2) != 0;
  message.agreed = wishes_of(reader.u8());
  message.unit = i64(reader);
  message.next = i64(reader);
  message.version = i64(reader);
  message.step = i64(reader);
  message.updates = i64(reader);
  message.gradients = i64(reader);
  message.samples = i64(reader);
  message.loss_sum = f64(reader);
  message.learning_rate = f64(reader);
  message.staleness = i64(reader);
  const bool meant = message.version >= 0 && message.step >= 0 && (message.finished || message.unit >= 0) &&
                     message.next >= -1 && message.staleness >= -1 && message.updates >= 0 &&
                     message.gradients >= 0 && message.samples >= 0;
  return whole(reader) && meant ? absl::OkStatus() : bad_message("Turn");
}

void encode(const SnapshotInfo& message, Buffer& buffer) {
  Writer writer(buffer);
  writer.put(message.version);
  writer.put(message.step);
  writer.put(message.optimizer_steps);
  put_units(message.units, writer);
}

absl::Status decode(Bytes bytes, SnapshotInfo& message) {
  ByteReader reader(bytes);
  message.version = i64(reader);
  message.step = i64(reader);
  message.optimizer_steps = i64(reader);
  const bool read = read_units(reader, message.units);
  const bool meant = message.version >= 0 && message.step >= 0 && message.optimizer_steps >= 0;
  return read && whole(reader) && meant ? absl::OkStatus() : bad_message("Copy");
}

void encode(const LogEntry& message, Buffer& buffer) {
  Writer writer(buffer);
  writer.put(static_cast<std::uint8_t>(message.kind));
  writer.put(message.version);
  switch (message.kind) {
    case LogEntry::Kind::kUpdate:
      writer.put(static_cast<std::uint8_t>(message.clips));
      writer.put(message.scale);
      writer.put(message.learning_rate);
      writer.put(static_cast<std::uint32_t>(message.contributors.size()));
      for (const Contributor& each : message.contributors) {
        writer.put(each.worker);
        writer.put(static_cast<std::uint8_t>((each.last ? 1 : 0) | (each.aside ? 2 : 0)));
      }
      break;
    case LogEntry::Kind::kTurn:
      writer.put(message.worker);
      writer.put(static_cast<std::uint8_t>(message.keeps));
      break;
    case LogEntry::Kind::kSnapshot:
      break;  // what it is of, worker 0 hears from the sequencer alone
  }
}

absl::Status decode(Bytes bytes, LogEntry& message) {
  ByteReader reader(bytes);
  const std::uint8_t kind = reader.u8();
  message.kind = static_cast<LogEntry::Kind>(kind);
  message.version = i64(reader);
  message.contributors.clear();
  message.worker = -1;
  if (kind == 0 || kind > 3 || message.version < 0) return bad_message("Log");
  if (message.kind == LogEntry::Kind::kTurn) {
    message.worker = static_cast<std::int32_t>(reader.u32());
    message.keeps = reader.u8() != 0;
    if (message.worker < 0 || message.worker >= kMaxWorkers) return bad_message("Log");
  }
  if (message.kind == LogEntry::Kind::kUpdate) {
    message.clips = reader.u8() != 0;
    message.scale = std::bit_cast<float>(reader.u32());
    message.learning_rate = f64(reader);
    const std::uint32_t count = reader.u32();
    if (!reader.ok() || count == 0 || count > kMaxWorkers) return bad_message("Log");
    message.contributors.resize(count);
    std::int32_t last = -1;
    for (Contributor& each : message.contributors) {
      each.worker = static_cast<std::int32_t>(reader.u32());
      const std::uint8_t which = reader.u8();
      each.last = (which & 1) != 0;
      each.aside = (which & 2) != 0;
      if (each.worker <= last || each.worker >= kMaxWorkers || which == 0 || which > 3)
        return bad_message("Log");
      last = each.worker;
    }
  }
  return whole(reader) ? absl::OkStatus() : bad_message("Log");
}

void encode(const WaitingMessage& message, Buffer& buffer) {
  Writer writer(buffer);
  writer.put(message.rank);
  writer.put(static_cast<std::uint8_t>(message.hold));
  writer.put(static_cast<std::int64_t>(message.idle.count()));
}

absl::Status decode(Bytes bytes, WaitingMessage& message) {
  ByteReader reader(bytes);
  message.rank = static_cast<std::int32_t>(reader.u32());
  const std::uint8_t hold = reader.u8();
  message.hold = static_cast<WaitingMessage::Hold>(hold);
  const std::int64_t idle = i64(reader);
  message.idle = Duration(idle);
  const bool meant = message.rank >= -1 && hold <= 2 && idle >= (hold > 0 ? 0 : -1);
  return whole(reader) && meant ? absl::OkStatus() : bad_message("Waiting");
}

void encode(const ComingMessage& message, Buffer& buffer) {
  Writer(buffer).put(message.made);
}

absl::Status decode(Bytes bytes, ComingMessage& message) {
  ByteReader reader(bytes);
  message.made = reader.u64();
  return whole(reader) ? absl::OkStatus() : bad_message("Coming");
}

void encode(const AbortMessage& message, Buffer& buffer) {
  Writer writer(buffer);
  writer.put(message.code);
  writer.put(message.blamed);
  writer.put(message.text.substr(0, kMaxReason));
}

absl::Status decode(Bytes bytes, AbortMessage& message) {
  ByteReader reader(bytes);
  message.code = static_cast<std::int32_t>(reader.u32());
  message.blamed = static_cast<std::int32_t>(reader.u32());
  message.text = std::string(reader.text(kMaxReason));
  return whole(reader) && message.code > 0 && message.code <= 16 ? absl::OkStatus() : bad_message("Abort");
}

void encode(double message, Buffer& buffer) {
  Writer writer(buffer);
  writer.put(message);
}

absl::Status decode(Bytes bytes, double& message) {
  ByteReader reader(bytes);
  message = f64(reader);
  return whole(reader) ? absl::OkStatus() : bad_message("number");
}

}  // namespace paceline::pserver

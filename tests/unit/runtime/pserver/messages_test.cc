#include "runtime/pserver/messages.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/rng.h"

namespace paceline::pserver {
namespace {

template <typename Message>
Buffer bytes_of(const Message& message) {
  Buffer buffer(13, std::byte{1});  // what it held before is forgotten
  encode(message, buffer);
  return buffer;
}

// No prefix and no longer text is taken for the message.
template <typename Message>
void refuses_other_lengths(const Message& message) {
  Buffer bytes = bytes_of(message);
  Message decoded;
  for (std::size_t n = 0; n < bytes.size(); ++n) {
    EXPECT_FALSE(decode(Bytes(bytes).first(n), decoded).ok()) << n << " of " << bytes.size() << " bytes";
  }
  bytes.push_back(std::byte{0});
  EXPECT_FALSE(decode(bytes, decoded).ok()) << "a byte more";
}

BeginMessage some_begin() {
  return {
      .elements = 1000,
      .decay = {0, 10, 20, 1000},
      .optimizer = {"exp_avg", "exp_avg_sq"},
      .optimizer_steps = 12,
      .start = {
          .units = {.units_per_step = 4, .below = 50, .missing = {41, 44}}, .step = 12, .total_steps = 90}};
}

TEST(PsMessages, Join) {
  const JoinMessage join{1000, 4096, true, 8192, 64, 0x12345678};
  JoinMessage decoded;
  ASSERT_TRUE(decode(bytes_of(join), decoded).ok());
  EXPECT_EQ(decoded, join);
  refuses_other_lengths(join);
}

TEST(PsMessages, Waiting) {
  using Hold = WaitingMessage::Hold;
  for (const WaitingMessage& said : {WaitingMessage{}, WaitingMessage{3, Hold::kNone, Duration(7)},
                                     WaitingMessage{-1, Hold::kSnapshot, {}}}) {
    WaitingMessage decoded;
    ASSERT_TRUE(decode(bytes_of(said), decoded).ok());
    EXPECT_EQ(decoded, said);
    refuses_other_lengths(said);
  }
  WaitingMessage decoded;
  for (const WaitingMessage& said :
       {WaitingMessage{-2, Hold::kNone, {}}, WaitingMessage{0, static_cast<Hold>(3), {}},
        WaitingMessage{0, Hold::kNone, Duration(-2)}, WaitingMessage{0, Hold::kLoading, Duration(-1)}}) {
    EXPECT_FALSE(decode(bytes_of(said), decoded).ok());
  }
}

TEST(PsMessages, Coming) {
  const ComingMessage coming{.made = 4096};
  ComingMessage decoded;
  ASSERT_TRUE(decode(bytes_of(coming), decoded).ok());
  EXPECT_EQ(decoded, coming);
  refuses_other_lengths(coming);
}

TEST(PsMessages, Begin) {
  BeginMessage decoded;
  ASSERT_TRUE(decode(bytes_of(some_begin()), decoded).ok());
  EXPECT_EQ(decoded.decay, some_begin().decay);
  EXPECT_EQ(decoded.optimizer, some_begin().optimizer);
  EXPECT_EQ(decoded.optimizer_steps, 12);
  EXPECT_EQ(decoded.start.units, some_begin().start.units);
  EXPECT_EQ(decoded.start.step, 12);
  EXPECT_EQ(decoded.start.total_steps, 90);
  refuses_other_lengths(some_begin());
}

TEST(PsMessages, BeginRefusesWhatCannotBeMeant) {
  using Spoil = void (*)(BeginMessage&);
  const Spoil spoils[] = {
      [](BeginMessage& m) { m.elements = kMaxData; },
      [](BeginMessage& m) {
        m.decay = {0, 1001};
      },
      [](BeginMessage& m) {
        m.decay = {20, 10};
      },
      [](BeginMessage& m) { m.decay = {20}; },
      [](BeginMessage& m) { m.optimizer.resize(kMaxVectors + 1); },
      [](BeginMessage& m) { m.optimizer[0] = std::string(kMaxVectorName + 1, 'x'); },
      [](BeginMessage& m) { m.optimizer_steps = -1; },
      [](BeginMessage& m) { m.start.step = 91; },
      [](BeginMessage& m) { m.start.step = -1; },
      [](BeginMessage& m) { m.start.units.below = -1; },
      [](BeginMessage& m) {
        m.start.units.missing = {44, 41};
      },
      [](BeginMessage& m) { m.start.units.missing = {50}; },
      [](BeginMessage& m) { m.start.units.missing = {-1}; },
  };
  for (const Spoil spoil : spoils) {
    BeginMessage message = some_begin(), decoded;
    spoil(message);
    EXPECT_EQ(decode(bytes_of(message), decoded).code(), absl::StatusCode::kInvalidArgument)
        << (&spoil - spoils);
  }
}

TEST(PsMessages, CommitWishesAndTurn) {
  const CommitMessage commit{1.25, 7, {.stop = true, .save = true}};
  CommitMessage commit2;
  ASSERT_TRUE(decode(bytes_of(commit), commit2).ok());
  EXPECT_EQ(commit2, commit);
  refuses_other_lengths(commit);

  for (int bits = 0; bits < 16; ++bits) {
    const Wishes wishes{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
    Wishes wishes2;
    ASSERT_TRUE(decode(bytes_of(wishes), wishes2).ok());
    EXPECT_EQ(wishes2, wishes);
  }

  const TurnResult turn{.finished = false,
                        .unit = 7,
                        .next = 9,
                        .version = 12,
                        .step = 3,
                        .agreed = {.drain = true},
                        .updates = 2,
                        .gradients = 4,
                        .samples = 64,
                        .loss_sum = 2.5,
                        .learning_rate = 0.125,
                        .dropped = true,
                        .staleness = -1};
  TurnResult turn2;
  ASSERT_TRUE(decode(bytes_of(turn), turn2).ok());
  EXPECT_EQ(turn2.unit, 7);
  EXPECT_EQ(turn2.next, 9);
  EXPECT_EQ(turn2.version, 12);
  EXPECT_EQ(turn2.step, 3);
  EXPECT_EQ(turn2.agreed, turn.agreed);
  EXPECT_EQ(turn2.updates, 2);
  EXPECT_EQ(turn2.gradients, 4);
  EXPECT_EQ(turn2.samples, 64);
  EXPECT_EQ(turn2.loss_sum, 2.5);
  EXPECT_EQ(turn2.learning_rate, 0.125);
  EXPECT_TRUE(turn2.dropped);
  EXPECT_EQ(turn2.staleness, -1);
  refuses_other_lengths(turn);
}

LogEntry some_update() {
  LogEntry entry;
  entry.kind = LogEntry::Kind::kUpdate;
  entry.version = 5;
  entry.clips = true;
  entry.scale = 1.5f;
  entry.learning_rate = 0.25;
  entry.contributors = {{0, true, false}, {3, true, true}, {4, false, true}};
  return entry;
}

TEST(PsMessages, LogEntries) {
  LogEntry decoded;
  ASSERT_TRUE(decode(bytes_of(some_update()), decoded).ok());
  EXPECT_EQ(decoded.version, 5);
  EXPECT_TRUE(decoded.clips);
  EXPECT_EQ(decoded.scale, 1.5f);
  EXPECT_EQ(decoded.learning_rate, 0.25);
  EXPECT_EQ(decoded.contributors, some_update().contributors);
  refuses_other_lengths(some_update());

  LogEntry turn;
  turn.kind = LogEntry::Kind::kTurn;
  turn.version = 5;
  turn.worker = 2;
  turn.keeps = true;
  ASSERT_TRUE(decode(bytes_of(turn), decoded).ok());
  EXPECT_EQ(decoded.kind, LogEntry::Kind::kTurn);
  EXPECT_EQ(decoded.worker, 2);
  EXPECT_TRUE(decoded.keeps);
  refuses_other_lengths(turn);

  using Spoil = void (*)(LogEntry&);
  const Spoil spoils[] = {
      [](LogEntry& e) { e.contributors.clear(); },
      [](LogEntry& e) { e.contributors[1].worker = 0; },
      [](LogEntry& e) { e.contributors[0].worker = -1; },
      [](LogEntry& e) { e.contributors[2].worker = kMaxWorkers; },
      [](LogEntry& e) { e.contributors[0].last = false; },
      [](LogEntry& e) { e.version = -1; },
      [](LogEntry& e) { e.kind = static_cast<LogEntry::Kind>(4); },
      [](LogEntry& e) {
        e.kind = LogEntry::Kind::kTurn;
        e.worker = kMaxWorkers;
      },
  };
  for (const Spoil spoil : spoils) {
    LogEntry entry = some_update();
    spoil(entry);
    EXPECT_FALSE(decode(bytes_of(entry), decoded).ok()) << (&spoil - spoils);
  }
}

TEST(PsMessages, AbortsAreCut) {
  AbortMessage decoded;
  ASSERT_TRUE(decode(bytes_of(AbortMessage{14, 2, std::string(5000, 'x')}), decoded).ok());
  EXPECT_EQ(decoded.code, 14);
  EXPECT_EQ(decoded.blamed, 2);
  EXPECT_EQ(decoded.text.size(), kMaxReason);
  EXPECT_FALSE(decode(bytes_of(AbortMessage{0, 2, ""}), decoded).ok()) << "OK is no reason";
  EXPECT_FALSE(decode(bytes_of(AbortMessage{17, 2, ""}), decoded).ok());
}

TEST(PsMessages, RandomBytesAreRefusedOrHarmless) {
  Rng rng(3, 0);
  for (int k = 0; k < 20000; ++k) {
    Buffer bytes(rng.below(120));
    for (std::byte& b : bytes) b = static_cast<std::byte>(rng.below(rng.below(2) == 0 ? 256 : 3));
    BeginMessage begin;
    if (decode(bytes, begin).ok()) {
      EXPECT_LE(begin.start.step, begin.start.total_steps);
    }
    LogEntry entry;
    if (decode(bytes, entry).ok()) {
      EXPECT_LT(entry.worker, kMaxWorkers);
    }
    SnapshotInfo snapshot;
    if (decode(bytes, snapshot).ok()) {
      EXPECT_GE(snapshot.version, 0);
    }
    TurnResult turn;
    if (decode(bytes, turn).ok()) {
      EXPECT_TRUE(turn.finished || turn.unit >= 0);
    }
    AbortMessage abort;
    (void)decode(bytes, abort);
    JoinMessage join;
    (void)decode(bytes, join);
  }
}

}  // namespace
}  // namespace paceline::pserver

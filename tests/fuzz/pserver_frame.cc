#include "runtime/pserver/frame.h"

#include "base/check.h"
#include "runtime/pserver/messages.h"
#include "runtime/pserver/row_messages.h"
#include "tests/fuzz/mended.h"
#include "tests/fuzz/target.h"

namespace paceline::fuzz {

namespace {

using pserver::Buffer;
using pserver::FrameKind;

template <typename Message>
void check(Input payload) {
  Message message{}, again{};
  if (!pserver::decode(payload, message).ok()) return;
  Buffer first, second;
  pserver::encode(message, first);
  PL_CHECK(pserver::decode(first, again).ok(), "what is written can be read");
  pserver::encode(again, second);
  PL_CHECK(first == second, "what is written is read back");
}

void check_rows(std::size_t row_floats, Input payload) {
  pserver::sparse::SavedRows rows;
  if (!pserver::decode(payload, row_floats, rows).ok()) return;
  Buffer written;
  pserver::encode(rows, written);
  PL_CHECK(std::ranges::equal(written, payload), "what is written is read back");
}

void check_payload(const pserver::FrameHeader& header, Input payload) {
  switch (header.kind) {
    case FrameKind::kJoin:
      return check<pserver::JoinMessage>(payload);
    case FrameKind::kBegin:
      return check<pserver::BeginMessage>(payload);
    case FrameKind::kCommit:
      return check<pserver::CommitMessage>(payload);
    case FrameKind::kWish:
      return check<pserver::Wishes>(payload);
    case FrameKind::kTurn:
      return check<pserver::TurnResult>(payload);
    case FrameKind::kWaiting:
      return check<pserver::WaitingMessage>(payload);
    case FrameKind::kCopy:
      return check<pserver::SnapshotInfo>(payload);
    case FrameKind::kNorm:
    case FrameKind::kFactor:
      return check<double>(payload);
    case FrameKind::kLog:
      return check<pserver::LogEntry>(payload);
    case FrameKind::kAbort:
      return check<pserver::AbortMessage>(payload);
    case FrameKind::kPullRows:
    case FrameKind::kPushRows:
      return check<pserver::RowsMessage>(payload);
    case FrameKind::kSavedRows:
      return check_rows(1 + static_cast<std::uint64_t>(header.number) % 64, payload);
    case FrameKind::kTables:
      return check<pserver::TablesMessage>(payload);
    case FrameKind::kComing:
      return check<pserver::ComingMessage>(payload);
    default:
      return;
  }
}

}  // namespace

// A header, as it is and with magic, version and checksum mended, and the message that follows it.
int fuzz_pserver_frame(Input input) {
  std::array<std::byte, pserver::kFrameBytes> good;
  pserver::encode(pserver::FrameHeader{}, good);
  for (const auto& bytes : {padded<good.size()>(input), mended(input, good, 6)}) {
    const auto header = pserver::decode_frame(bytes);
    if (!header.ok()) continue;
    PL_CHECK(header->kind <= pserver::kLastFrameKind, "a known kind");
    PL_CHECK(
        header->length <= (pserver::goes_straight(header->kind) ? pserver::kMaxData : pserver::kMaxMessage),
        "frames are bounded");
    pserver::encode(*header, good);
    PL_CHECK(pserver::decode_frame(good).value() == *header, "what is written is read back");
    if (input.size() > good.size()) check_payload(*header, input.subspan(good.size()));
  }
  return 0;
}

}  // namespace paceline::fuzz

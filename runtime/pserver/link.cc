#include "runtime/pserver/link.h"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/status.h"
#include "runtime/collective/fault.h"

namespace paceline::pserver {

namespace {

constexpr std::size_t kBufferBytes = std::size_t{64} << 10;
constexpr std::size_t kMaxPieces = 64;  // of one system call

}  // namespace

Link::Link(transport::Wire wire, int rank, std::string name, Generation generation)
    : wire_(std::move(wire)), rank_(rank), name_(std::move(name)), generation_(generation) {
  buffer_.resize(kBufferBytes);
  queued_.reserve(kBufferBytes);
  pieces_.reserve(kMaxPieces);
}

absl::Status Link::blame(const absl::Status& status) const {
  if (status.ok() || collective::faulty_rank(status).has_value()) return status;
  return collective::with_faulty_rank(with_context(status, name_), rank_);
}

absl::Status Link::gone(const absl::Status& status) {
  cut_ = cut_ || transport::was_cut(status);
  return blame(with_context(status, "is gone"));
}

// ---- writing ----

void Link::queue(std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  if (pieces_.empty() || pieces_.back().straight != nullptr) {
    pieces_.push_back({nullptr, queued_.size(), 0});
  }
  queued_.insert(queued_.end(), bytes.begin(), bytes.end());
  pieces_.back().size += bytes.size();
}

void Link::queue_header(FrameHeader header, std::size_t length) {
  header.generation = generation_;
  header.length = length;
  std::array<std::byte, kFrameBytes> bytes;
  encode(header, bytes);
  queue(bytes);
  ++frames_sent_;
  asked_ = true;
}

void Link::send(FrameHeader header, std::span<const std::byte> message) {
  queue_header(header, message.size());
  queue(message);
}

void Link::send_straight(FrameHeader header, std::span<const std::byte> payload) {
  queue_header(header, payload.size());
  if (!payload.empty()) pieces_.push_back({payload.data(), 0, payload.size()});
}

absl::Status Link::flush() {
  while (!drained()) {
    std::array<iovec, kMaxPieces> parts;
    std::size_t count = 0;
    for (std::size_t k = next_; k < pieces_.size() && count < kMaxPieces; ++k, ++count) {
      const std::size_t skip = k == next_ ? written_ : 0;
      const std::byte* from =
          pieces_[k].straight != nullptr ? pieces_[k].straight : queued_.data() + pieces_[k].at;
      parts[count] = {const_cast<std::byte*>(from + skip), pieces_[k].size - skip};
    }
    const absl::StatusOr<std::size_t> sent = wire_.write_some({parts.data(), count});
    if (!sent.ok()) return gone(sent.status());
    if (*sent == 0) {
      if (forget_written() <= kMaxQueued) return absl::OkStatus();
      return blame(absl::ResourceExhaustedError("it does not read what is sent to it"));
    }
    bytes_sent_ += *sent;
    for (std::size_t left = *sent; left > 0;) {
      const std::size_t part = std::min(left, pieces_[next_].size - written_);
      written_ += part;
      left -= part;
      if (written_ < pieces_[next_].size) break;
      ++next_;
      written_ = 0;
    }
  }
  queued_.clear();
  pieces_.clear();
  next_ = 0;
  return absl::OkStatus();
}

std::size_t Link::waiting() const {
  std::size_t bytes = 0;
  for (std::size_t k = next_; k < pieces_.size(); ++k) bytes += pieces_[k].size;
  return bytes - written_;
}

// A queue that never runs empty, as while rows are streamed, stays about as small as what is not written yet.
std::size_t Link::forget_written() {
  std::size_t gone = queued_.size();
  for (std::size_t k = next_; k < pieces_.size(); ++k) {
    if (pieces_[k].straight != nullptr) continue;
    gone = pieces_[k].at + (k == next_ ? written_ : 0);
    break;
  }
  const std::size_t rest = queued_.size() - gone;
  if (gone < rest || gone == 0) return rest;  // so every byte is moved once at most
  queued_.erase(queued_.begin(), queued_.begin() + static_cast<std::ptrdiff_t>(gone));
  pieces_.erase(pieces_.begin(), pieces_.begin() + static_cast<std::ptrdiff_t>(next_));
  next_ = 0;
  if (pieces_[0].straight == nullptr) {
    pieces_[0].at += written_;
    pieces_[0].size -= written_;
    written_ = 0;
  }
  for (Piece& piece : pieces_) {
    if (piece.straight == nullptr) piece.at -= gone;
  }
  return rest;
}

// ---- reading ----

absl::Status Link::hand_on(FrameReceiver& receiver) {
  while (got_ < header_.length && begin_ < end_) {
    PL_ASSIGN_OR_RETURN(const std::span<std::byte> place, receiver.place(*this, header_, got_));
    const std::size_t part = std::min({place.size(), end_ - begin_, std::size_t{header_.length - got_}});
    std::memcpy(place.data(), buffer_.data() + begin_, part);
    begin_ += part;
    got_ += part;
  }
  if (got_ < header_.length) return absl::OkStatus();
  in_payload_ = false;
  ++frames_received_;
  return receiver.received(*this, header_, {});
}

absl::Status Link::parse(FrameReceiver& receiver) {
  while (true) {
    if (in_payload_) {
      PL_RETURN_IF_ERROR(hand_on(receiver));
      if (in_payload_) return absl::OkStatus();
      continue;
    }
    if (end_ - begin_ < kFrameBytes) return absl::OkStatus();
    const std::span<const std::byte> all(buffer_.data() + begin_, end_ - begin_);
    PL_ASSIGN_OR_RETURN(const FrameHeader header, decode_frame(all.first<kFrameBytes>()));
    if (header.generation != generation_) {
      return absl::FailedPreconditionError(str_cat("sent a frame of generation ", header.generation.value,
                                                   " in generation ", generation_.value));
    }
    if (goes_straight(header.kind) && header.length > 0) {
      header_ = header;
      got_ = 0;
      in_payload_ = true;
      begin_ += kFrameBytes;
      continue;
    }
    const std::size_t whole = kFrameBytes + header.length;
    if (all.size() < whole) {
      if (buffer_.size() < whole) buffer_.resize(whole);
      return absl::OkStatus();
    }
    ++frames_received_;
    PL_RETURN_IF_ERROR(receiver.received(*this, header, all.subspan(kFrameBytes, header.length)));
    begin_ += whole;
  }
}

absl::Status Link::receive(FrameReceiver& receiver, std::size_t budget) {
  std::size_t total = 0;
  while (true) {
    if (absl::Status parsed = parse(receiver); !parsed.ok()) return blame(parsed);
    // Over the budget only what poll(2) would not tell of: a fast peer keeps no thread to itself.
    const std::size_t most = total < budget ? budget - total : wire_.held();
    if (most == 0) return absl::OkStatus();
    std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
    std::array<iovec, 2> parts;
    std::size_t count = 0, direct = 0;
    if (in_payload_) {
      auto place = receiver.place(*this, header_, got_);
      if (!place.ok()) return blame(place.status());
      direct = std::min({place->size(), std::size_t{header_.length - got_}, most});
      parts[count++] = {place->data(), direct};
    }
    parts[count++] = {buffer_.data() + end_, std::min(buffer_.size() - end_, most - direct)};
    const absl::StatusOr<std::size_t> result = wire_.read_some({parts.data(), count});
    if (!result.ok()) return gone(result.status());
    const std::size_t got = *result;
    if (got == 0) return absl::OkStatus();
    total += got;
    bytes_received_ += got;
    if (std::exchange(asked_, false)) ++answers_;
    const std::size_t placed = std::min(got, direct);
    got_ += placed;
    end_ += got - placed;
  }
}

}  // namespace paceline::pserver

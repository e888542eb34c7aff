#include "runtime/catch_up/state_sender.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/status.h"

namespace paceline::catch_up {

namespace {

constexpr Duration kPark = std::chrono::milliseconds(100);
constexpr std::size_t kUnit = 16;  // elements: a cache line
constexpr std::size_t kStepsBehind = 4;

std::size_t fill(std::byte* chunk, const Frame& frame, std::span<const std::span<const float>> from) {
  const auto header = encode(frame);
  std::memcpy(chunk, header.data(), header.size());
  std::size_t bytes = header.size();
  for (const std::span<const float> each : from) {
    std::memcpy(chunk + bytes, each.data() + frame.begin, frame.count * sizeof(float));
    bytes += frame.count * sizeof(float);
  }
  return bytes;
}

}  // namespace

StateSender::StateSender(collective::Fabric& fabric, const Clock& clock, collective::Group group)
    : fabric_(fabric),
      clock_(clock),
      group_(std::move(group)),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

StateSender::~StateSender() {
  thread_.request_stop();
  bool connected = false;
  {
    auto shared = shared_.lock();
    shared->over = true;
    connected = shared->connected;
  }
  if (!connected) fabric_.cancel_connects(group_.generation);
  thread_.join();
}

// ---- training thread ----

void StateSender::lend(StateView state, const Update& update) {
  auto shared = shared_.lock();
  if (shared->over || !shared->connected) return;
  if (!shared->slice) {
    shared->slice =
        slice_of(state.weights.size(), group_.members.size() - 1, static_cast<std::size_t>(group_.rank) - 1);
  }
  const std::size_t most = std::max(kMostWaiting, kStepsBehind * shared->slice->size() * sizeof(float));
  if (shared->bytes > most) {
    shared->over = true;
    shared->status = absl::ResourceExhaustedError("the newcomer does not keep up");
    return;
  }
  shared->lent = Lent{std::move(state), update, 0, shared->given};
}

void StateSender::take_back() {
  auto shared = shared_.lock_when([](const Shared& s) { return !s.copying; }, std::chrono::hours(1));
  while (has_gradient(*shared) || (has_copy(*shared) && !shared->lent->gave)) {
    Copy copy = next_copy(*shared);
    const std::size_t bytes = fill(copy.to.get(), copy.frame, copy.from);
    add(*shared, {std::move(copy.to), bytes});
  }
  shared->lent.reset();
}

void StateSender::end(StateView state, const Update& update) {
  lend(std::move(state), update);
  take_back();
  auto shared = shared_.lock();
  if (shared->over) return;
  Chunk chunk = std::make_unique_for_overwrite<std::byte[]>(kHeaderBytes);
  const std::size_t bytes = fill(chunk.get(), {FrameKind::kEnd, update}, {});
  add(*shared, {std::move(chunk), bytes});
  shared->over = true;
}

void StateSender::refuse() {
  auto shared = shared_.lock();
  if (shared->over) return;
  Chunk chunk = std::make_unique_for_overwrite<std::byte[]>(kHeaderBytes);
  const std::size_t bytes = fill(chunk.get(), {FrameKind::kRefusal, {}}, {});
  add(*shared, {std::move(chunk), bytes});
  shared->over = true;
}

// ---- what both threads do, with the lock ----

bool StateSender::has_copy(const Shared& shared) {
  const bool more = shared.lent && shared.given < shared.slice->size() && shared.bytes < kManyWaiting;
  return has_gradient(shared) || more;
}

// REQUIRES: has_copy(). The gradient of a step goes before the state that the step has left.
StateSender::Copy StateSender::next_copy(Shared& shared) {
  Lent& lent = *shared.lent;
  Copy copy;
  if (lent.at < lent.end) {
    const std::size_t count = std::min(kMostFloats, lent.end - lent.at);
    copy.frame = {FrameKind::kGradient, lent.update, shared.slice->begin + lent.at, count};
    copy.from = {lent.state.gradient};
    lent.at += count;
  } else {
    const std::size_t piece = kMostFloats / (1 + lent.state.optimizer.size()) / kUnit * kUnit;
    const std::size_t count = std::min(piece, shared.slice->size() - shared.given);
    copy.frame = {FrameKind::kState, lent.update, shared.slice->begin + shared.given, count};
    copy.from = {lent.state.weights};
    copy.from.insert(copy.from.end(), lent.state.optimizer.begin(), lent.state.optimizer.end());
    shared.given += count;
    lent.gave = true;
  }
  if (!shared.free.empty()) {
    copy.to = std::move(shared.free.back());
    shared.free.pop_back();
  } else {
    copy.to = std::make_unique_for_overwrite<std::byte[]>(kHeaderBytes + kMostFloats * sizeof(float));
  }
  return copy;
}

void StateSender::add(Shared& shared, Waiting waiting) {
  shared.bytes += waiting.bytes;
  shared.waiting.push_back(std::move(waiting));
}

// ---- the sender's thread ----

void StateSender::run(const std::stop_token& stop) {
  absl::Status status = connect();
  if (status.ok()) status = send_all(stop);
  stream_.reset();
  if (!status.ok()) give_up(std::move(status));
  shared_.lock()->free.clear();
}

absl::Status StateSender::connect() {
  const std::array<int, 1> newcomer = {0};
  PL_ASSIGN_OR_RETURN(auto links, fabric_.meet(group_, newcomer, 1, Deadline::after(clock_.now(), kMeetLimit),
                                               collective::Fabric::NextView::kLinked));
  std::vector<std::vector<transport::Wire>> sockets(1);
  sockets[0] = std::move(links[0].sockets);
  PL_ASSIGN_OR_RETURN(stream_, transport::Streams::make(std::move(sockets)));
  shared_.lock()->connected = true;
  return absl::OkStatus();
}

absl::Status StateSender::send_all(const std::stop_token& stop) {
  while (true) {
    Copy copy;
    {
      auto shared = shared_.lock_when(
          [&](const Shared& s) { return has_copy(s) || !s.waiting.empty() || sending_.bytes > 0 || s.over; },
          kPark);
      if (stop.stop_requested()) return absl::CancelledError("given up");
      if (!shared->status.ok()) return shared->status;
      if (has_copy(*shared)) {
        copy = next_copy(*shared);
        shared->copying = true;
      } else if (sending_.bytes == 0 && !shared->waiting.empty()) {
        sending_ = std::move(shared->waiting.front());
        shared->waiting.pop_front();
      } else if (sending_.bytes == 0) {
        if (shared->over) return absl::OkStatus();
        continue;
      }
    }
    if (copy.to == nullptr) {
      PL_RETURN_IF_ERROR(send_some());
      continue;
    }
    const std::size_t bytes = fill(copy.to.get(), copy.frame, copy.from);
    auto shared = shared_.lock();
    add(*shared, {std::move(copy.to), bytes});
    shared->copying = false;
  }
}

absl::Status StateSender::send_some() {
  const iovec rest{sending_.chunk.get() + sending_.sent, sending_.bytes - sending_.sent};
  PL_ASSIGN_OR_RETURN(const std::size_t some, stream_->write_some(0, 0, {&rest, 1}));
  sending_.sent += some;
  if (some == 0) stream_->park({}, {0, 0}, std::chrono::milliseconds(1));
  if (sending_.sent < sending_.bytes) return absl::OkStatus();
  auto shared = shared_.lock();
  shared->bytes -= sending_.bytes;
  if (sending_.bytes > kHeaderBytes) shared->free.push_back(std::move(sending_.chunk));
  sending_ = {};
  return absl::OkStatus();
}

void StateSender::give_up(absl::Status status) {
  auto shared = shared_.lock();
  shared->over = true;
  shared->waiting.clear();
  shared->lent.reset();
  if (shared->status.ok()) shared->status = std::move(status);
}

}  // namespace paceline::catch_up

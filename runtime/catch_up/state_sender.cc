#include "runtime/catch_up/state_sender.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace paceline::catch_up {

namespace {

constexpr Duration kPark = std::chrono::milliseconds(100);
constexpr int kShareOfStep = 100;  // of a step one such part goes to copies of the state
constexpr std::size_t kUnit = 16;  // elements: a cache line
constexpr std::size_t kStepsBehind = 4;

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

void StateSender::run(const std::stop_token& stop) {
  absl::Status status = connect();
  shared_.lock()->connected = status.ok();
  if (status.ok()) status = send_all(stop);
  stream_.reset();
  if (!status.ok()) end(std::move(status));
}

absl::Status StateSender::send_all(const std::stop_token& stop) {
  while (true) {
    Waiting next;
    {
      auto shared = shared_.lock_when([](const Shared& s) { return !s.waiting.empty() || s.over; }, kPark);
      if (stop.stop_requested()) return absl::CancelledError("given up");
      if (shared->waiting.empty() && shared->over) return shared->status;
      if (shared->waiting.empty()) continue;
      next = std::move(shared->waiting.front());
      shared->waiting.pop_front();
    }
    PL_RETURN_IF_ERROR(send(next, stop));
    auto shared = shared_.lock();
    shared->bytes -= next.bytes;
    shared->free.push_back(std::move(next.chunk));
  }
}

absl::Status StateSender::connect() {
  const std::array<int, 1> newcomer = {0};
  PL_ASSIGN_OR_RETURN(auto links,
                      fabric_.meet(group_, newcomer, 1, Deadline::after(clock_.now(), kMeetLimit)));
  PL_ASSIGN_OR_RETURN(stream_, [&] {
    std::vector<std::vector<UniqueFd>> sockets(1);
    sockets[0] = std::move(links[0].sockets);
    return transport::Streams::make(std::move(sockets));
  }());
  return absl::OkStatus();
}

absl::Status StateSender::send(const Waiting& next, const std::stop_token& stop) {
  for (std::size_t sent = 0; sent < next.bytes && !stop.stop_requested();) {
    const iovec rest{next.chunk.get() + sent, next.bytes - sent};
    PL_ASSIGN_OR_RETURN(const std::size_t some, stream_->write_some(0, 0, {&rest, 1}));
    if (some == 0) stream_->park({}, {0, 0}, kPark);
    sent += some;
  }
  return absl::OkStatus();
}

void StateSender::end(absl::Status status) {
  auto shared = shared_.lock();
  shared->over = true;
  shared->waiting.clear();
  if (shared->status.ok()) shared->status = std::move(status);
}

void StateSender::add(const Frame& frame, std::span<const std::span<const float>> floats) {
  Chunk chunk;
  {
    auto shared = shared_.lock();
    if (!shared->free.empty()) {
      chunk = std::move(shared->free.back());
      shared->free.pop_back();
    }
  }
  if (chunk == nullptr)
    chunk = std::make_unique_for_overwrite<std::byte[]>(kHeaderBytes + kMostFloats * sizeof(float));
  const auto header = encode(frame);
  std::memcpy(chunk.get(), header.data(), header.size());
  std::size_t bytes = header.size();
  for (const std::span<const float> each : floats) {
    std::memcpy(chunk.get() + bytes, each.data(), each.size_bytes());
    bytes += each.size_bytes();
  }
  auto shared = shared_.lock();
  shared->bytes += bytes;
  shared->waiting.push_back({std::move(chunk), bytes});
}

void StateSender::step_applied(const StateView& state, const Update& update, bool last) {
  {
    auto shared = shared_.lock();
    if (shared->over) return;
    if (!shared->connected && !last) return;
  }
  if (!slice_) {
    slice_ =
        slice_of(state.weights.size(), group_.members.size() - 1, static_cast<std::size_t>(group_.rank) - 1);
  }
  add_gradient(state, update);
  if (last) {
    add({FrameKind::kEnd, update}, {});
    shared_.lock()->over = true;
    return;
  }
  add_state(state, update);
  called_at_ = clock_.now();
  const std::size_t most = std::max(kMostWaiting, kStepsBehind * slice_->size() * sizeof(float));
  if (shared_.lock()->bytes > most) end(absl::ResourceExhaustedError("the newcomer does not keep up"));
}

void StateSender::add_gradient(const StateView& state, const Update& update) {
  for (std::size_t at = 0; at < given_; at += kMostFloats) {
    const std::size_t count = std::min(kMostFloats, given_ - at), begin = slice_->begin + at;
    const std::span<const float> gradient = state.gradient.subspan(begin, count);
    add({FrameKind::kGradient, update, begin, count}, {&gradient, 1});
  }
}

void StateSender::add_state(const StateView& state, const Update& update) {
  const std::size_t vectors = 1 + state.optimizer.size();
  const std::size_t piece = kMostFloats / vectors / kUnit * kUnit;
  const TimePoint from = clock_.now();
  const Duration limit = called_at_ ? (from - *called_at_) / kShareOfStep : Duration::zero();
  std::vector<std::span<const float>> floats(vectors);
  while (given_ < slice_->size()) {
    const std::size_t count = std::min(piece, slice_->size() - given_), begin = slice_->begin + given_;
    floats[0] = state.weights.subspan(begin, count);
    for (std::size_t v = 1; v < vectors; ++v) floats[v] = state.optimizer[v - 1].subspan(begin, count);
    add({FrameKind::kState, update, begin, count}, floats);
    given_ += count;
    if (clock_.now() - from >= limit || shared_.lock()->bytes > kManyWaiting) break;
  }
}

void StateSender::refuse() {
  if (shared_.lock()->over) return;
  add({FrameKind::kRefusal, {}}, {});
  shared_.lock()->over = true;
}

}  // namespace paceline::catch_up

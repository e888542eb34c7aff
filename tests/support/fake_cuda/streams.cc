#include "tests/support/fake_cuda/streams.h"

#include <utility>

namespace paceline::fake_cuda {

StreamId Streams::create() {
  next_ += 16;
  streams_[next_];
  return next_;
}

bool Streams::destroy(StreamId stream) {
  if (!has(stream)) return false;
  finish(stream);
  for (auto& [id, event] : events_) {
    if (event.stream == stream) event.position = 0;
  }
  return streams_.erase(stream) == 1;
}

void Streams::add(StreamId stream, Work work) {
  streams_.at(stream).work.push_back(std::move(work));
}

EventId Streams::create_event() {
  next_ += 16;
  events_[next_];
  return next_;
}

void Streams::record(EventId event, StreamId stream) {
  const std::uint64_t position = streams_.at(stream).issued() + 1;
  events_[event] = {.stream = stream, .position = position};
  add(stream, [this, event, stream, position] {
    const auto found = events_.find(event);
    if (found != events_.end() && found->second.stream == stream && found->second.position == position)
      found->second.time = now_;
  });
}

void Streams::wait(StreamId stream, EventId event) {
  const Event seen = events_.at(event);
  if (seen.stream == 0) return;
  add(stream, [this, seen] { finish_to(seen.stream, seen.position); });
}

bool Streams::reached(EventId event) const {
  const Event& e = events_.at(event);
  const auto stream = streams_.find(e.stream);
  return stream == streams_.end() || stream->second.done >= e.position;
}

bool Streams::step(StreamId stream) {
  Stream& s = streams_.at(stream);
  if (s.work.empty()) return true;
  const Work work = std::move(s.work.front());
  s.work.pop_front();
  work();
  ++s.done;
  ++now_;
  return s.work.empty();
}

bool Streams::step_to(EventId event) {
  if (!reached(event)) step(events_.at(event).stream);
  return reached(event);
}

void Streams::finish_to(StreamId stream, std::uint64_t position) {
  if (!has(stream)) return;
  while (streams_.at(stream).done < position) step(stream);
}

void Streams::finish(StreamId stream) {
  while (!step(stream)) {
  }
}

void Streams::finish_all() {
  for (auto& [id, stream] : streams_) finish(id);
}

}  // namespace paceline::fake_cuda

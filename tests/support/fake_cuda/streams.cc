#include "tests/support/fake_cuda/streams.h"

#include <utility>

namespace paceline::fake_cuda {

StreamId Streams::create(int priority) {
  next_ += 16;
  streams_[next_].priority = priority;
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
  add_gate(stream, [work = std::move(work)] {
    work();
    return true;
  });
}

void Streams::add_gate(StreamId stream, Gate gate) {
  Stream& s = streams_.at(stream);
  if (s.capture.has_value()) {
    s.capture->push_back(std::move(gate));
  } else {
    s.work.push_back(std::move(gate));
  }
}

void Streams::begin_capture(StreamId stream) {
  Stream& s = streams_.at(stream);
  s.capture.emplace();
  s.spoiled = false;
}

Streams::Graph Streams::end_capture(StreamId stream) {
  Stream& s = streams_.at(stream);
  auto graph = std::make_shared<const std::vector<Gate>>(std::move(*s.capture));
  s.capture.reset();
  return s.spoiled ? nullptr : graph;
}

void Streams::add_graph(StreamId stream, const Graph& graph) {
  for (std::size_t i = 0; i < graph->size(); ++i) add_gate(stream, [graph, i] { return (*graph)[i](); });
}

EventId Streams::create_event(bool timing) {
  next_ += 16;
  events_[next_].timing = timing;
  return next_;
}

void Streams::record(EventId event, StreamId stream) {
  Event& recorded = events_.at(event);
  if (captures(stream)) {
    recorded = {.captured = true, .timing = recorded.timing};
    return;
  }
  const std::uint64_t position = streams_.at(stream).issued() + 1;
  recorded = {.stream = stream, .position = position, .timing = recorded.timing};
  add(stream, [this, event, stream, position] {
    const auto found = events_.find(event);
    if (found != events_.end() && found->second.stream == stream && found->second.position == position)
      found->second.time = now_;
  });
}

void Streams::wait(StreamId stream, EventId event) {
  const Event seen = events_.at(event);
  if (seen.stream == 0) return;
  add_gate(stream, [this, seen] { return finish_to(seen.stream, seen.position); });
}

bool Streams::reached(EventId event) const {
  const Event& e = events_.at(event);
  const auto stream = streams_.find(e.stream);
  return stream == streams_.end() || stream->second.done >= e.position;
}

bool Streams::step(StreamId stream) {
  Stream& s = streams_.at(stream);
  if (s.work.empty()) return true;
  if (!s.work.front()()) return false;
  s.work.pop_front();
  ++s.done;
  ++now_;
  return s.work.empty();
}

bool Streams::step_to(EventId event) {
  if (!reached(event)) step(events_.at(event).stream);
  return reached(event);
}

bool Streams::finish_to(StreamId stream, std::uint64_t position) {
  if (!has(stream)) return true;
  const Stream& s = streams_.at(stream);
  while (s.done < position) {
    const std::uint64_t before = s.done;
    step(stream);
    if (s.done == before) return false;
  }
  return true;
}

bool Streams::finish(StreamId stream) {
  return finish_to(stream, streams_.at(stream).issued());
}

void Streams::finish_all() {
  for (auto& [id, stream] : streams_) finish(id);
}

}  // namespace paceline::fake_cuda

#pragma once

// Streams and events of the emulated GPU: work that waits until it is asked for, each stream in its order.
// Not thread-safe: the library's lock is held.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

namespace paceline::fake_cuda {

using StreamId = std::uint64_t;
using EventId = std::uint64_t;

class Streams {
 public:
  using Work = std::function<void()>;
  using Gate = std::function<bool()>;

  StreamId create(int priority = 0);
  bool destroy(StreamId stream);  // its work is done first
  bool has(StreamId stream) const { return streams_.contains(stream); }
  std::size_t count() const { return streams_.size(); }
  int priority(StreamId stream) const { return streams_.at(stream).priority; }
  void add(StreamId stream, Work work);
  // A piece of work that is not done until `gate` says so: what comes after it waits.
  void add_gate(StreamId stream, Gate gate);

  // What is added from now on is kept for the graph that end_capture() gives, and not done. REQUIRES: it
  // does not capture.
  using Graph = std::shared_ptr<const std::vector<Gate>>;
  void begin_capture(StreamId stream);
  bool captures(StreamId stream) const { return streams_.at(stream).capture.has_value(); }
  // Something was done that a capture does not take: it goes on, and gives no graph.
  void spoil(StreamId stream) { streams_.at(stream).spoiled = true; }
  Graph end_capture(StreamId stream);  // null: it was spoiled
  void add_graph(StreamId stream, const Graph& graph);

  EventId create_event(bool timing);
  bool destroy_event(EventId event) { return events_.erase(event) == 1; }
  bool has_event(EventId event) const { return events_.contains(event); }
  std::size_t event_count() const { return events_.size(); }
  void record(EventId event, StreamId stream);
  // What is added to the stream from now on comes after what the event was recorded behind; nothing where it
  // never was.
  void wait(StreamId stream, EventId event);
  // Recorded, and reached. One never recorded counts as reached.
  bool reached(EventId event) const;
  // When it was reached, in pieces of work done by the device.
  std::uint64_t time(EventId event) const { return events_.at(event).time; }
  bool recorded(EventId event) const { return events_.at(event).stream != 0; }
  // Recorded last in a capture: it stands for nothing that is done.
  bool captured(EventId event) const { return events_.at(event).captured; }
  bool timing(EventId event) const { return events_.at(event).timing; }

  // As far as gates let it; whether nothing is left.
  bool finish(StreamId stream);
  void finish_all();
  // Does one piece of work, where it can. Whether there is none left.
  bool step(StreamId stream);
  bool step_to(EventId event);  // of the stream that it was recorded in; whether it is reached

 private:
  struct Stream {
    std::uint64_t done = 0;
    std::deque<Gate> work;
    std::optional<std::vector<Gate>> capture;
    bool spoiled = false;
    int priority = 0;  // nothing here is done sooner for that
    std::uint64_t issued() const { return done + work.size(); }
  };
  struct Event {
    StreamId stream = 0;
    std::uint64_t position = 0;  // reached when so many pieces of that stream are done
    std::uint64_t time = 0;
    bool captured = false;
    bool timing = false;
  };
  bool finish_to(StreamId stream, std::uint64_t position);

  std::map<StreamId, Stream> streams_;
  std::map<EventId, Event> events_;
  std::uint64_t next_ = 0x1000;
  std::uint64_t now_ = 0;
};

}  // namespace paceline::fake_cuda

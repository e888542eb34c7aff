#pragma once

// A member's log as server-sent events while it grows: a thread reads it, the server's thread hands it on.
// The reading thread waits for a slow viewer, up to kMostBytes behind; the server waits for nobody.

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/guarded.h"
#include "controller/dashboard/gate.h"
#include "controller/web/http_message.h"

namespace paceline::dashboard {

// Bytes of a log that are read and not yet told. Thread-safe.
class LogBuffer {
 public:
  static constexpr std::size_t kMostBytes = 256 << 10;

  // Waits while the buffer is full. False: nobody reads any more.
  bool put(std::string_view bytes, const std::stop_token& stop);
  // No more bytes come.
  void finish(const absl::Status& status);

  struct Taken {
    std::string text;  // whole lines, but for a very long one, and for the end
    bool over = false;
    absl::Status status;
  };
  Taken take();

 private:
  struct Kept {
    std::string text;
    bool over = false;
    absl::Status status;
  };
  Guarded<Kept> kept_;
};

// All logs that are followed. The server's thread calls start(); destruction ends all, and waits for them.
class LogFollowers {
 public:
  static constexpr std::size_t kMost = 96, kMostOfOne = 12;  // of one viewer

  explicit LogFollowers(std::function<void()> wake) : wake_(std::move(wake)) {}

  // Reads a log into the sink until it ends; false from the sink: nobody reads any more.
  using Sink = std::function<bool(std::string_view)>;
  using Read = std::function<absl::Status(const Sink& sink, const std::stop_token& stop)>;
  // The stream of what `read` reads, in a thread of its own, for this viewer. Null: kMost are followed
  // already, or kMostOfOne of his. It ends where `sight` does; null: never.
  std::shared_ptr<web::HttpStream> start(const std::string& viewer, Read read,
                                         std::shared_ptr<Sight> sight = nullptr);

 private:
  struct Follower {
    std::string viewer;
    std::shared_ptr<std::atomic<bool>> ended;
    std::jthread thread;
  };

  const std::function<void()> wake_;
  Guarded<std::vector<Follower>> followers_;
};

}  // namespace paceline::dashboard

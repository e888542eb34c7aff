#pragma once

// A watch stream's bytes, in any pieces, to events: one JSON object per line,
// {"type": "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR", "object": {...}}. Pure; a value; one
// thread at a time.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "controller/cluster/kube/json.h"

namespace paceline::kube {

inline constexpr std::size_t kMaxWatchLineBytes = 8u << 20;

enum class WatchEventType : std::uint8_t { kAdded, kModified, kDeleted, kBookmark, kError };

struct WatchEvent {
  WatchEventType type;
  Json object;  // an object; of kError a Status
};

class WatchDecoder {
 public:
  // Calls `on_event` for every line that is complete, until it returns false. DATA_LOSS where a line is too
  // long or no event, and from then on.
  absl::Status feed(std::string_view bytes, const std::function<bool(WatchEvent)>& on_event);
  // The stream has ended. DATA_LOSS in the middle of a line.
  absl::Status finish() const;

 private:
  absl::Status line(std::string_view text, const std::function<bool(WatchEvent)>& on_event);
  std::string rest_;  // of a line, at most kMaxWatchLineBytes
  absl::Status broken_;
  bool ended_ = false;  // on_event returned false
};

}  // namespace paceline::kube

#pragma once

// events.jsonl: one JSON object per line, each written at once. Thread-safe.

#include <string>

#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "controller/cluster/cluster.h"

namespace paceline::cluster {

// The line for an event, with its newline. Bytes that are not UTF-8 are kept as they are.
std::string event_line(const Event& event, WallTime time);

class EventLog {
 public:
  static absl::StatusOr<EventLog> open(const std::string& path);
  absl::Status write(const Event& event, WallTime time) const;

 private:
  EventLog(std::string path, UniqueFd file) : path_(std::move(path)), file_(std::move(file)) {}
  std::string path_;
  UniqueFd file_;
};

}  // namespace paceline::cluster

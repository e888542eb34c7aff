#include "controller/cluster/kube/watch_decoder.h"

#include <algorithm>
#include <optional>

#include "base/status.h"

namespace paceline::kube {

namespace {

std::optional<WatchEventType> type_of(std::string_view name) {
  if (name == "ADDED") return WatchEventType::kAdded;
  if (name == "MODIFIED") return WatchEventType::kModified;
  if (name == "DELETED") return WatchEventType::kDeleted;
  if (name == "BOOKMARK") return WatchEventType::kBookmark;
  if (name == "ERROR") return WatchEventType::kError;
  return std::nullopt;
}

}  // namespace

absl::Status WatchDecoder::feed(std::string_view bytes, const std::function<bool(WatchEvent)>& on_event) {
  while (broken_.ok() && !ended_) {
    const std::size_t end = bytes.find('\n');
    if (rest_.size() + std::min(end, bytes.size()) > kMaxWatchLineBytes) {
      broken_ = absl::DataLossError(str_cat("a watch event longer than ", kMaxWatchLineBytes, " bytes"));
      break;
    }
    if (end == std::string_view::npos) {
      rest_.append(bytes);
      return absl::OkStatus();
    }
    if (rest_.empty()) {
      broken_ = line(bytes.substr(0, end), on_event);
    } else {
      rest_.append(bytes.substr(0, end));
      broken_ = line(rest_, on_event);
      rest_ = std::string();  // gives back what one large object took
    }
    bytes.remove_prefix(end + 1);
  }
  rest_ = std::string();
  return broken_;
}

absl::Status WatchDecoder::finish() const {
  if (!broken_.ok() || rest_.empty()) return broken_;
  return absl::DataLossError(
      str_cat("the watch ended in the middle of an event, after ", rest_.size(), " bytes of it"));
}

absl::Status WatchDecoder::line(std::string_view text, const std::function<bool(WatchEvent)>& on_event) {
  if (text.find_first_not_of(" \t\r") == std::string_view::npos) return absl::OkStatus();
  absl::StatusOr<Json> json = parse_json(text);
  if (!json.ok()) return with_context(json.status(), "a watch event");
  const auto type = type_of(text_at(*json, {"type"}));
  const auto object = json->find("object");
  if (!type || object == json->end() || !object->is_object()) {
    return absl::DataLossError(str_cat("no watch event, but \"", sanitize_line(text, 80), "\""));
  }
  ended_ = !on_event(WatchEvent{*type, std::move(*object)});
  return absl::OkStatus();
}

}  // namespace paceline::kube

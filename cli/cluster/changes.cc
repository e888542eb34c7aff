#include "cli/cluster/changes.h"

#include <algorithm>

#include "base/status.h"
#include "controller/cluster/kube/api_error.h"
#include "controller/cluster/kube/watch_decoder.h"

namespace paceline::cli {

namespace {

constexpr Duration kWatchTime = std::chrono::minutes(5);  // then the server ends it, and it begins again
constexpr Duration kFirstWait = std::chrono::seconds(1);
constexpr Duration kLongestWait = std::chrono::seconds(30);

bool is_hopeless(const absl::Status& status) {
  return absl::IsPermissionDenied(status) || absl::IsNotFound(status) || absl::IsUnauthenticated(status) ||
         absl::IsInvalidArgument(status);
}

// One watch, until it ends. `ended`: on_object did.
absl::Status watch_once(Call& call, Changes& changes, bool& ended) {
  kube::WatchDecoder decoder;
  absl::Status broken;
  const auto on_event = [&](const kube::WatchEvent& event) {
    if (event.type == kube::WatchEventType::kError) {
      broken = kube::error_of(event.object);
      return false;
    }
    changes.resource_version = kube::text_at(event.object, {"metadata", "resourceVersion"});
    const bool shown =
        event.type == kube::WatchEventType::kAdded || event.type == kube::WatchEventType::kModified;
    ended = shown && !changes.on_object(event.object);
    return !ended;
  };
  const auto on_bytes = [&](std::string_view bytes) {
    const absl::Status decoded = decoder.feed(bytes, on_event);
    if (broken.ok()) broken = decoded;
    return broken.ok() && !ended;
  };
  const absl::Status status = call.client.api().watch(changes.scope, changes.resource_version, kWatchTime,
                                                      on_bytes, call.client.stop());
  return broken.ok() ? status : broken;
}

}  // namespace

absl::Status follow_changes(Call& call, Changes changes) {
  Duration wait = kFirstWait;
  bool told = false;
  for (;;) {
    bool ended = false;
    absl::Status status = watch_once(call, changes, ended);
    if (ended) return absl::OkStatus();
    if (call.client.stop().stop_requested()) return absl::CancelledError("stopped");
    if (absl::IsOutOfRange(status)) {
      auto version = changes.relist();
      status = version.status();
      if (version.ok()) changes.resource_version = *std::move(version);
    }
    if (status.ok()) {
      wait = kFirstWait;
      told = false;
      continue;
    }
    if (is_hopeless(status)) return call.client.plain(status, changes.asked);
    if (!told)
      call.err << call.program << ": " << call.client.plain(status, changes.asked).message()
               << "; it is tried again\n"
               << std::flush;
    told = true;
    if (!call.pause(wait, call.client.stop())) return absl::CancelledError("stopped");
    wait = std::min(2 * wait, kLongestWait);
  }
}

}  // namespace paceline::cli

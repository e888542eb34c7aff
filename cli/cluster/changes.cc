#include "cli/cluster/changes.h"

#include <algorithm>

#include "base/status.h"
#include "controller/cluster/kube/api_error.h"
#include "controller/cluster/kube/watch_decoder.h"

namespace paceline::cli {

namespace {

constexpr Duration kWatchTime = std::chrono::minutes(5);     // then the server ends it, and it begins again
constexpr Duration kLastingWatch = std::chrono::seconds(5);  // one without news that lasts so long went well
constexpr Duration kFirstWait = std::chrono::seconds(1);
constexpr Duration kLongestWait = std::chrono::seconds(30);

bool is_hopeless(const absl::Status& status) {
  return absl::IsPermissionDenied(status) || absl::IsNotFound(status) || absl::IsUnauthenticated(status) ||
         absl::IsInvalidArgument(status);
}

struct Watched {
  absl::Status status;
  bool news = false;   // something came
  bool ended = false;  // on_object ended it
};

// One watch, until it ends.
Watched watch_once(Call& call, Changes& changes) {
  Watched watched;
  kube::WatchDecoder decoder;
  absl::Status broken;
  const auto on_event = [&](const kube::WatchEvent& event) {
    if (event.type == kube::WatchEventType::kError) {
      broken = kube::error_of(event.object);
      return false;
    }
    watched.news = true;
    changes.resource_version = kube::text_at(event.object, {"metadata", "resourceVersion"});
    const bool shown =
        event.type == kube::WatchEventType::kAdded || event.type == kube::WatchEventType::kModified;
    watched.ended = shown && !changes.on_object(event.object);
    return !watched.ended;
  };
  const auto on_bytes = [&](std::string_view bytes) {
    const absl::Status decoded = decoder.feed(bytes, on_event);
    if (broken.ok()) broken = decoded;
    return broken.ok() && !watched.ended;
  };
  const absl::Status status =
      call.client->api().watch(changes.scope, changes.resource_version, kWatchTime, on_bytes, call.stop);
  watched.status = broken.ok() ? status : broken;
  return watched;
}

}  // namespace

absl::Status follow_changes(Call& call, Changes changes) {
  Duration wait = kFirstWait;
  bool told = false;
  for (;;) {
    const TimePoint begun = call.clock.now();
    const Watched watched = watch_once(call, changes);
    if (watched.ended) return absl::OkStatus();
    if (call.stop.stop_requested()) return absl::CancelledError("stopped");
    absl::Status status = watched.status;
    if (absl::IsOutOfRange(status)) {
      auto version = changes.relist();
      status = version.status();
      if (version.ok()) changes.resource_version = *std::move(version);
    }
    if (watched.news || call.clock.now() - begun >= kLastingWatch) {
      wait = kFirstWait;
      if (status.ok()) told = false;
      if (status.ok()) continue;
    }
    if (is_hopeless(status)) return call.client->plain(status, changes.asked);
    // A watch that a server, or somebody between, ends at once and without news is asked for more and more
    // seldom.
    if (!told && !status.ok())
      call.err << call.program << ": " << call.client->plain(status, changes.asked).message()
               << "; it is tried again\n"
               << std::flush;
    told = told || !status.ok();
    if (!call.pause(wait, call.stop)) return absl::CancelledError("stopped");
    wait = std::min(2 * wait, kLongestWait);
  }
}

}  // namespace paceline::cli

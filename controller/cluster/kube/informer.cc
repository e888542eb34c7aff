#include "controller/cluster/kube/informer.h"

#include <algorithm>
#include <variant>

#include "base/status.h"
#include "controller/cluster/kube/api_error.h"

namespace paceline::kube {

Informer::Informer(ApiClient& api, Scope scope, ObjectSink& sink, const Clock& clock, Logger log,
                   std::uint64_t seed, OnChange on_change, ReflectorLimits limits, Pause pause)
    : api_(api),
      scope_(std::move(scope)),
      sink_(sink),
      clock_(clock),
      log_(std::move(log)),
      on_change_(std::move(on_change)),
      pause_(std::move(pause)),
      core_(limits, seed) {}

void Informer::start() {
  thread_ = std::jthread([this](std::stop_token stop) { run(std::move(stop)); });
}

void Informer::list_again() {
  thread_ = {};  // it stops, and is joined
  core_.list_again();
  shared_.lock()->synced = false;
  start();
}

absl::Status Informer::wait_synced(Duration timeout) {
  bool synced = false;
  auto shared = shared_.lock_when([](const Shared& s) { return s.synced; }, timeout, &synced);
  if (synced) return absl::OkStatus();
  return absl::DeadlineExceededError(str_cat("the list of ", scope_.resource.plural, " has not come within ",
                                             format_duration(timeout), shared->trouble.empty() ? "" : ": ",
                                             shared->trouble));
}

void Informer::run(std::stop_token stop) {
  while (!stop.stop_requested()) {
    const ReflectorCore::Action action = core_.next();
    if (const auto* wait = std::get_if<ReflectorCore::Wait>(&action)) {
      shared_.lock()->trouble = wait->reason;
      log_.warning(str_cat(scope_.resource.plural, ": ", wait->reason, "; tried again in ",
                           format_duration(wait->time)));
      pause_(wait->time, stop);
    } else if (const auto* page = std::get_if<ReflectorCore::List>(&action)) {
      list(*page, stop);
    } else {
      watch(std::get<ReflectorCore::Watch>(action), stop);
    }
  }
}

void Informer::list(const ReflectorCore::List& action, std::stop_token stop) {
  round_ = action.round;
  const absl::StatusOr<Page> page = api_.list(scope_, action.limit, action.continue_token, stop);
  if (!page.ok()) {
    if (!absl::IsCancelled(page.status())) core_.list_failed(page.status());
    return;
  }
  if (action.continue_token.empty()) sink_.begin(round_, page->resource_version);
  ObjectSink::Keys changed;
  for (const Json& item : page->items) sink_.put(item, round_, changed);
  const bool complete = core_.page_read(page->resource_version, page->continue_token);
  if (complete) sink_.sweep(round_, page->resource_version, changed);
  if (complete) {
    auto shared = shared_.lock();
    shared->synced = true;
    shared->trouble.clear();
  }
  publish(changed);
}

void Informer::watch(const ReflectorCore::Watch& action, std::stop_token stop) {
  const TimePoint begin = clock_.now();
  WatchDecoder decoder;
  absl::Status decoded;
  const auto on_event = [&](const WatchEvent& event) { return take(event); };
  const auto on_bytes = [&](std::string_view bytes) {
    bool wanted = true;
    decoded = decoder.feed(bytes, [&](WatchEvent event) { return wanted = on_event(event); });
    return wanted && decoded.ok() && !stop.stop_requested();
  };
  absl::Status ended = api_.watch(scope_, action.resource_version, action.timeout, on_bytes, stop);
  if (ended.ok()) ended = decoder.finish();
  if (!decoded.ok()) ended = decoded;
  if (stop.stop_requested()) return;
  core_.watch_ended(ended, clock_.now() - begin);
}

bool Informer::take(const WatchEvent& event) {
  if (event.type == WatchEventType::kError) {
    core_.error_read(error_of(event.object));
    return false;
  }
  const std::string& version = text_at(event.object, {"metadata", "resourceVersion"});
  if (!core_.event_read(version)) return false;
  ObjectSink::Keys changed;
  if (event.type == WatchEventType::kDeleted) {
    sink_.remove(event.object, changed);
  } else if (event.type != WatchEventType::kBookmark) {
    sink_.put(event.object, round_, changed);
  }
  publish(changed);
  return true;
}

void Informer::publish(const ObjectSink::Keys& changed) {
  for (std::size_t i = 0; i < changed.size(); ++i) {
    // The pods of a list come in order, so most repetitions are neighbours.
    if (i == 0 || changed[i] != changed[i - 1]) on_change_(changed[i]);
  }
}

}  // namespace paceline::kube

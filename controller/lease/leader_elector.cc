#include "controller/lease/leader_elector.h"

#include <optional>
#include <utility>

#include "base/status.h"

namespace paceline::lease {

namespace {

constexpr Duration kWatchPeriod = std::chrono::milliseconds(100);

}  // namespace

LeaderElector::LeaderElector(ElectionConfig config, LeaseStore& store, const Clock& clock, std::uint64_t seed,
                             Pause pause, ElectionCallbacks callbacks)
    : store_(store),
      clock_(clock),
      pause_(std::move(pause)),
      callbacks_(std::move(callbacks)),
      rng_(seed, 0),
      shared_(std::move(config)) {}

LeaderElector::~LeaderElector() {
  end();
}

void LeaderElector::end() {
  runner_.request_stop();
  watcher_.request_stop();
  if (runner_.joinable()) runner_.join();
  if (watcher_.joinable()) watcher_.join();
}

void LeaderElector::start() {
  runner_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
  watcher_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

bool LeaderElector::leads() const {
  auto shared = shared_.lock();
  return !shared->over && shared->core.leads(clock_.now());
}

void LeaderElector::run(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    ElectionCore::Action action;
    {
      auto shared = shared_.lock();
      if (shared->over) return;
      action = shared->core.next(clock_.now(), clock_.wall_now(), static_cast<double>(rng_.uniform()));
    }
    if (const auto* lost = std::get_if<ElectionCore::Lost>(&action)) return lose(lost->reason);
    if (const auto* wait = std::get_if<ElectionCore::Wait>(&action)) {
      (void)pause_(wait->time, stop);
      continue;
    }
    if (std::holds_alternative<ElectionCore::Read>(action)) {
      auto seen = store_.read();
      if (seen.ok()) shared_.lock()->core.on_read(*std::move(seen), clock_.now());
      after(seen.status());
    } else {
      const auto& write = std::get<ElectionCore::Write>(action);
      auto seen = store_.write(write);
      if (absl::IsNotFound(seen.status()) && !write.version.empty()) {  // deleted since it was read
        shared_.lock()->core.on_read(std::nullopt, clock_.now());
        continue;
      }
      if (seen.ok()) shared_.lock()->core.on_written(*std::move(seen), clock_.now());
      after(seen.status());
    }
  }
}

void LeaderElector::after(absl::Status status) {
  if (status.ok()) return publish();
  std::string why(status.message());
  {
    auto shared = shared_.lock();
    if (absl::IsAborted(status) || absl::IsAlreadyExists(status)) return shared->core.on_conflict();
    shared->core.on_error(why);
    if (shared->over || std::exchange(shared->told_trouble, why) == why) return;
  }
  if (callbacks_.on_trouble) callbacks_.on_trouble(why);
}

void LeaderElector::publish() {
  bool begins = false;
  std::optional<std::pair<std::string, std::string>> holder;
  {
    auto shared = shared_.lock();
    if (shared->over) return;
    shared->told_trouble.clear();
    begins = shared->core.leads(clock_.now()) && !std::exchange(shared->leading, true);
    const bool deleted = shared->core.holder().empty() && shared->core.leads(clock_.now());
    if (!deleted && shared->core.holder() != shared->told_holder) {
      shared->told_holder = shared->core.holder();
      holder.emplace(shared->told_holder, shared->core.holder_address());
    }
  }
  if (holder && callbacks_.on_holder) callbacks_.on_holder(holder->first, holder->second);
  if (begins && callbacks_.on_leading) callbacks_.on_leading();
}

// The core alone would notice only after a call that hangs.
void LeaderElector::watch(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    bool late = false;
    {
      auto shared = shared_.lock();
      if (shared->over) return;
      const auto until = shared->core.leads_until();
      late = shared->leading && until && clock_.now() >= *until;
    }
    if (late) return lose("the lease was not renewed in time: the API server does not answer");
    std::unique_lock lock(watch_mutex_);
    (void)wake_.wait_for(lock, stop, kWatchPeriod, [] { return false; });
  }
}

void LeaderElector::lose(const std::string& reason) {
  if (std::exchange(shared_.lock()->over, true)) return;
  if (callbacks_.on_lost) callbacks_.on_lost(reason);
}

absl::Status LeaderElector::release() {
  shared_.lock()->over = true;
  end();
  const auto write = shared_.lock()->core.release(clock_.now(), clock_.wall_now());
  if (!write) return absl::OkStatus();
  const absl::Status written = store_.write(*write).status();
  if (absl::IsNotFound(written)) return absl::OkStatus();  // what somebody has deleted is nobody's
  return with_context(written, "giving back the lease");
}

}  // namespace paceline::lease

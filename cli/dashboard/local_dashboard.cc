#include "cli/dashboard/local_dashboard.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "base/guarded.h"
#include "base/program.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/cluster/describe_text.h"
#include "cli/dashboard/run_place.h"
#include "cli/dashboard/run_watch.h"
#include "controller/dashboard/board.h"
#include "controller/dashboard/event_stream.h"
#include "controller/dashboard/job_row.h"
#include "controller/dashboard/server.h"

namespace paceline::cli {

namespace {

constexpr Duration kPassInterval = std::chrono::milliseconds(500);
constexpr Duration kListPatience = std::chrono::seconds(1);          // of the start
constexpr Duration kSending = 2 * dashboard::Board::kEventInterval;  // until each stream has had its turn
constexpr std::size_t kBytesOfPass = 2 << 20;                        // that it reads of a job's series
constexpr int kGiveWay = 19;                                         // nice
constexpr std::size_t kDescriptors = 1024 + dashboard::Server::kConnections;  // those of a run beside it

// A process that serves the dashboard of its own run would wait for its own end.
std::string why_not(dashboard::Action action, const kube::Json& object) {
  const bool own = kube::integer_at(object, {"status", "run", "ownerPid"}) == ::getpid();
  if (own && action == dashboard::Action::kDelete && !dashboard::has_ended(object))
    return "its `paceline run` serves this dashboard, and ends with it; stop it by ctrl-C first";
  return dashboard::why_not(action, object);
}

// The words of `paceline describe`.
std::vector<std::string> hints(const kube::Json& object) {
  return hints_for({.job = read_job(object), .program = "paceline"});
}

class LocalDashboardImpl final : public LocalDashboard {
 public:
  LocalDashboardImpl(const RunStore& store, const Clock& clock)
      : store_(store), clock_(clock), place_(store, clock), board_(clock, {why_not, hints}) {}
  ~LocalDashboardImpl() override {
    watcher_.request_stop();
    (void)stopped_.lock();  // wakes it
  }

  absl::Status serve(int port) {
    PL_RETURN_IF_ERROR(reserve_descriptors(kDescriptors));
    absl::Status status;
    // Threads are as nice as the one that starts them, which itself has to stay as it is.
    std::thread starter([&] {
      (void)::setpriority(PRIO_PROCESS, 0, kGiveWay);
      auto server = dashboard::Server::start(
          board_, place_,
          {.version = PACELINE_VERSION, .user = place_.user(), .address = str_cat("127.0.0.1:", port)},
          clock_);
      status = server.status();
      if (!server.ok()) return;
      server_ = *std::move(server);
      watcher_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
    });
    starter.join();
    PL_RETURN_IF_ERROR(status);
    // A program that asks at once gets the list, where that takes no long time.
    (void)watched_.lock_when([](const Watched& watched) { return watched.all_read; }, kListPatience);
    return status;
  }

  std::string new_address() override { return server_->new_address(); }

  void show_end() override {
    if (server_->viewers() == 0) return;
    board_.hurry();
    const std::uint64_t next = watched_.lock()->passes + 2;  // begins from here on
    (void)watched_.lock_when([&](const Watched& watched) { return watched.passes >= next; },
                             kEndPatience - kSending);
    (void)stopped_.lock_when([](bool) { return false; }, kSending);
  }

 private:
  void watch(const std::stop_token& stop) {
    const std::unique_ptr<jobs::JobSource> runs = place_.source();
    RunWatch watch(store_, *runs, clock_);
    while (!stop.stop_requested()) {
      std::vector<std::string> names;
      const std::vector<std::string> looked_at = board_.looked_at();
      for (const std::string& key : looked_at) names.push_back(key.substr(key.find('/') + 1));
      const auto changes = watch.pass(names);
      board_.apply(changes);
      for (std::size_t i = 0; i < std::min(looked_at.size(), RunPlace::kMostTails) && !stop.stop_requested();
           ++i)
        note_series(looked_at[i]);
      {
        auto watched = watched_.lock();
        ++watched->passes;
        watched->all_read = watch.all_read();
      }
      if (watch.all_read())
        (void)stopped_.lock_when([&](bool) { return stop.stop_requested(); }, kPassInterval);
    }
  }

  void note_series(const std::string& key) {
    const auto object = board_.object(key);
    if (object == nullptr) return;
    (void)place_.use_series(*object, kBytesOfPass, [&](const dashboard::JobSeries& series) {
      board_.note_series(key, {series.version(), series.newest()});
    });
  }

  const RunStore store_;
  const Clock& clock_;
  RunPlace place_;
  dashboard::Board board_;
  struct Watched {
    std::uint64_t passes = 0;
    bool all_read = false;
  };
  Guarded<Watched> watched_;
  Guarded<bool> stopped_;
  std::unique_ptr<dashboard::Server> server_;
  std::jthread watcher_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<LocalDashboard>> LocalDashboard::start(const RunStore& store, int port,
                                                                      const Clock& clock) {
  auto dashboard = std::make_unique<LocalDashboardImpl>(store, clock);
  PL_RETURN_IF_ERROR(dashboard->serve(port));
  return dashboard;
}

}  // namespace paceline::cli

// paceline dashboard: serves the dashboard of this machine's runs, or of a cluster's jobs, until ctrl-C.

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/program.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/cluster/interrupt.h"
#include "cli/commands/cluster_flags.h"
#include "cli/dashboard/browser.h"
#include "cli/dashboard/cluster_dashboard.h"
#include "cli/dashboard/local_dashboard.h"
#include "cli/number_checks.h"
#include "cli/session.h"

namespace paceline::cli {

namespace {

constexpr auto kEndLimit = std::chrono::seconds(10);  // of actions under way

struct DashboardOptions {
  int port = 0;
  bool no_browser = false;
};

// Prints the address that opens a dashboard, and shows it where there is a desktop. Returns what a browser
// is led by, which is removed with it.
std::unique_ptr<LeadingFile> show(const Session& session, const RunStore& store,
                                  const DashboardOptions& options, const std::string& address) {
  std::cout << address << "\n" << std::flush;
  std::cerr << "The address opens the dashboard once, in one browser; ctrl-C ends it.\n";
  if (options.no_browser || !session.out_terminal.interactive || !has_desktop()) return nullptr;
  auto written = LeadingFile::write(store.state_folder(), address);
  absl::Status opened = written.status();
  if (written.ok()) opened = (*written)->open_in_browser();
  if (!opened.ok()) std::cerr << "No browser could be opened: " << opened.message() << "\n";
  return written.ok() ? *std::move(written) : nullptr;
}

// Serves `dashboard` until it is asked to end by `interrupted`.
template <typename Dashboard>
absl::Status serve(const Session& session, const DashboardOptions& options, const UniqueFd& interrupted,
                   std::unique_ptr<Dashboard> dashboard) {
  PL_ASSIGN_OR_RETURN(const RunStore store, session.store());
  std::unique_ptr<LeadingFile> leads = show(session, store, options, dashboard->new_address());
  pollfd wait{interrupted.get(), POLLIN, 0};
  signalfd_siginfo taken;
  while (::poll(&wait, 1, -1) <= 0 || ::read(interrupted.get(), &taken, sizeof(taken)) <= 0) {
  }
  leads.reset();
  end_within(kEndLimit, kExitSystem, {SIGINT, SIGTERM, SIGHUP});
  dashboard.reset();
  end_when_ready();
  return absl::OkStatus();
}

absl::Status serve_runs(Session& session, const DashboardOptions& options, const UniqueFd& interrupted) {
  PL_ASSIGN_OR_RETURN(const RunStore store, session.store());
  PL_ASSIGN_OR_RETURN(auto dashboard, LocalDashboard::start(store, options.port, session.clock));
  return serve(session, options, interrupted, std::move(dashboard));
}

absl::Status serve_jobs(Session& session, const DashboardOptions& options, const UniqueFd& interrupted,
                        Call& call) {
  const Logger log = Logger::to_stderr(session.program, LogLevel::kWarning);
  PL_ASSIGN_OR_RETURN(auto dashboard, ClusterDashboard::start(*call.client,
                                                              {.cluster = call.client->cluster(),
                                                               .ns = call.all_namespaces ? "" : call.ns,
                                                               .port = options.port,
                                                               .program = session.program},
                                                              session.clock, log));
  return serve(session, options, interrupted, std::move(dashboard));
}

void dashboard(Session& session, const DashboardOptions& options, const ClusterFlags& flags) {
  // Before any thread is made.
  const absl::StatusOr<UniqueFd> interrupted = take_signals({SIGINT, SIGTERM, SIGHUP});
  if (!interrupted.ok()) return session.fail(interrupted.status());
  if (is_on_cluster(session, flags)) {
    return on_cluster(session, flags, Mode::kOnce,
                      [&](Call& call) { return serve_jobs(session, options, *interrupted, call); });
  }
  if (const absl::Status status = serve_runs(session, options, *interrupted); !status.ok())
    session.fail(status);
}

}  // namespace

void add_dashboard(CLI::App& app, Session& session) {
  auto* command = app.add_subcommand(
      "dashboard", "Look at the runs of this machine, or at the jobs of a cluster, in a browser, live");
  auto options = std::make_shared<DashboardOptions>();
  add_value(*command, "--port", options->port, "PORT", "Port of 127.0.0.1 (default: a free one)")
      ->check(whole_number_between(0, 65535));
  command->add_flag("--no-browser", options->no_browser, "Print the address, and open no browser");
  auto flags = add_cluster_flags(*command, session, Where::kBoth, /*with_all=*/true);
  command->footer(str_cat(
      "Ctrl-C ends it; runs go on. The address is for one browser: start the command again for another "
      "one. On a cluster it has your rights there.\n\n",
      session.examples({{false, "dashboard"},
                        {false, "dashboard --port 8080 --no-browser"},
                        {true, "dashboard --context prod -n team-a"}})));
  command->callback([&session, options, flags] { dashboard(session, *options, *flags); });
}

}  // namespace paceline::cli

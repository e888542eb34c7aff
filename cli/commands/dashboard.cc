// paceline dashboard: serves the dashboard of this machine's runs until ctrl-C.

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
#include "cli/dashboard/browser.h"
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

absl::Status serve(Session& session, const DashboardOptions& options) {
  PL_ASSIGN_OR_RETURN(const RunStore store, session.store());
  PL_ASSIGN_OR_RETURN(const UniqueFd interrupted, take_signals({SIGINT, SIGTERM, SIGHUP}));
  PL_ASSIGN_OR_RETURN(std::unique_ptr<LocalDashboard> dashboard,
                      LocalDashboard::start(store, options.port, session.clock));
  const std::string address = dashboard->new_address();
  std::cout << address << "\n" << std::flush;
  std::cerr << "The address opens the dashboard once, in one browser; ctrl-C ends it.\n";
  std::unique_ptr<LeadingFile> leads;
  if (!options.no_browser && session.out_terminal.interactive && has_desktop()) {
    auto written = LeadingFile::write(store.state_folder(), address);
    absl::Status opened = written.status();
    if (written.ok()) {
      leads = *std::move(written);
      opened = leads->open_in_browser();
    }
    if (!opened.ok()) std::cerr << "No browser could be opened: " << opened.message() << "\n";
  }
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

}  // namespace

void add_dashboard(CLI::App& app, Session& session) {
  auto* command = app.add_subcommand("dashboard", "Look at the runs of this machine in a browser, live");
  auto options = std::make_shared<DashboardOptions>();
  add_value(*command, "--port", options->port, "PORT", "Port of 127.0.0.1 (default: a free one)")
      ->check(whole_number_between(0, 65535));
  command->add_flag("--no-browser", options->no_browser, "Print the address, and open no browser");
  command->footer(
      "Ctrl-C ends it; runs go on. The address is for one browser: start the command again for another "
      "one.\n\n"
      "Examples:\n  paceline dashboard\n  paceline dashboard --port 8080 --no-browser");
  command->callback([&session, options] {
    if (const absl::Status status = serve(session, *options); !status.ok()) session.fail(status);
  });
}

}  // namespace paceline::cli

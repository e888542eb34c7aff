// paceline top [RUN]: the live view of a run that another process owns.

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/text.h"
#include "base/unique_fd.h"
#include "cli/session.h"
#include "cli/view/dashboard.h"

namespace paceline::cli {

namespace {

void top(Session& session, const std::string& wanted, double interval_seconds, bool once) {
  const auto store = session.store();
  if (!store.ok()) return session.fail(store.status());
  auto run = store->choose(wanted);
  if (!run.ok()) return session.fail(run.status());
  const std::string name = run->name;

  // Ctrl-C is an ordinary end here: it is read as a file descriptor, so that waiting for it and for the next
  // frame is one poll.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  UniqueFd interrupted(::signalfd(-1, &signals, SFD_CLOEXEC));

  Frame frame;
  while (std::cout) {
    if (session.out_terminal.interactive) {
      const Terminal now = detect_terminal(1);
      session.out_terminal.columns = now.columns;
      session.out_terminal.rows = now.rows;
    }
    const auto lines = render_dashboard(*run, session.out_terminal);
    if (session.out_terminal.interactive) {
      std::cout << frame.draw(lines) << std::flush;
    } else {
      for (const std::string& line : lines) std::cout << line << "\n";
      std::cout << std::endl;
    }
    if (once || is_finished(*run)) break;
    pollfd wait{interrupted.get(), POLLIN, 0};
    if (::poll(&wait, 1, static_cast<int>(interval_seconds * 1000)) > 0) break;
    run = store->get(name);
    if (!run.ok()) return session.fail(run.status());
  }
  if (is_finished(*run) && !run->message.empty()) std::cout << "\n" << run->message << "\n";
}

}  // namespace

void add_top(CLI::App& app, Session& session) {
  struct Options {
    std::string run;
    double interval_seconds = 0.5;
    bool once = false;
  };
  auto* command =
      app.add_subcommand("top", "Watch a run live: speed, loss, and where each member's time goes");
  auto options = std::make_shared<Options>();
  command->add_option("RUN", options->run, kRunHelp)->type_name("");
  command->add_option("--interval", options->interval_seconds, "Seconds between two looks (default: 0.5)")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.1, 3600.0, "0.1 to 3600"));
  command->add_flag("--once", options->once, "Print once and end");
  command->footer("Examples:\n  paceline top\n  paceline top fashion-allreduce --once");
  command->callback(
      [&session, options] { top(session, options->run, options->interval_seconds, options->once); });
}

}  // namespace paceline::cli

// paceline top [NAME]: the live view of a run that another process owns, or of a job on a cluster.

#include <poll.h>
#include <signal.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/text.h"
#include "cli/cluster/interrupt.h"
#include "cli/commands/cluster_flags.h"
#include "cli/number_checks.h"
#include "cli/session.h"
#include "cli/view/live.h"

namespace paceline::cli {

namespace {

void top(Session& session, const std::string& wanted, double interval_seconds, bool once) {
  const auto store = session.store();
  if (!store.ok()) return session.fail(store.status());
  const auto run = store->choose(wanted);
  if (absl::IsNotFound(run.status()))
    return session.fail(kExitNotFound, str_cat(run.status().message(), session.cluster_hint()));
  if (!run.ok()) return session.fail(run.status());

  // Ctrl-C is an ordinary end here: it is read as a file descriptor, so that waiting for it and for the next
  // frame is one poll.
  const auto interrupted = take_signals({SIGINT, SIGTERM});
  if (!interrupted.ok()) return session.fail(interrupted.status());

  LiveView view{.terminal = session.out_terminal};
  view.once = once;
  view.look = [&] { return store->get(run->name); };
  view.size = [] { return detect_terminal(1); };
  view.wait = [&] {
    pollfd wait{interrupted->get(), POLLIN, 0};
    return ::poll(&wait, 1, static_cast<int>(interval_seconds * 1000)) == 0;
  };
  if (const absl::Status status = show_live(std::cout, view); !status.ok()) session.fail(status);
}

}  // namespace

void add_top(CLI::App& app, Session& session) {
  struct Options {
    std::string run;
    double interval_seconds = 0;
    bool once = false;
  };
  auto* command =
      app.add_subcommand("top", "Watch a run live: speed, loss, and where each member's time goes");
  auto options = std::make_shared<Options>();
  command->add_option("NAME", options->run, kNameHelp)->type_name("");
  command
      ->add_option("--interval", options->interval_seconds,
                   "Seconds between two looks (default: 0.5; on a cluster 2)")
      ->type_name("SECONDS")
      ->check(number_between(0.1, 3600));
  command->add_flag("--once", options->once, "Print once and end");
  auto flags = add_cluster_flags(*command, session, Where::kBoth);
  command->footer(session.examples(
      {{false, "top"}, {false, "top fashion-allreduce --once"}, {true, "top digits -n team-a"}}));
  command->callback([&session, options, flags] {
    const double given = options->interval_seconds;
    if (!is_on_cluster(session, *flags))
      return top(session, options->run, given > 0 ? given : 0.5, options->once);
    TopOptions wanted{.name = "", .once = options->once};
    if (!take_job_name(session, options->run, wanted.name)) return;
    if (given > 0)
      wanted.interval = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(given));
    on_cluster(session, *flags, Mode::kFollow, [&](Call& call) { return top_job(call, wanted); });
  });
}

}  // namespace paceline::cli

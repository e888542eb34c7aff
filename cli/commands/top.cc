// paceline top [NAME]: the live view of a run that another process owns, or of a job on a cluster.

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/cluster_flags.h"
#include "cli/number_checks.h"

namespace paceline::cli {

void add_top(CLI::App& app, Session& session) {
  struct Options {
    std::string run;
    double interval_seconds = 0;
    bool once = false;
  };
  auto* command =
      app.add_subcommand("top", "Watch a run live: speed, loss, and where each member's time goes");
  auto options = std::make_shared<Options>();
  add_value(*command, "NAME", options->run, "", kNameHelp);
  add_value(*command, "--interval", options->interval_seconds, "SECONDS",
            "Seconds between two looks (default: 0.5; on a cluster 2)")
      ->check(number_between(0.1, 3600));
  command->add_flag("--once", options->once, "Print once and end");
  auto flags = add_cluster_flags(*command, session, Where::kBoth);
  command->footer(session.examples(
      {{false, "top"}, {false, "top fashion-allreduce --once"}, {true, "top digits -n team-a"}}));
  command->callback([&session, options, flags] {
    double seconds = options->interval_seconds;
    if (seconds <= 0) seconds = is_on_cluster(session, *flags) ? 2 : 0.5;
    TopOptions wanted{
        .name = "",
        .interval = std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)),
        .once = options->once};
    if (!take_name(session, *flags, options->run, wanted.name)) return;
    on_jobs(session, *flags, Mode::kFollow, [&](Call& call) { return top_job(call, wanted); });
  });
}

}  // namespace paceline::cli

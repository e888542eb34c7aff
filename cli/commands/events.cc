// paceline events: what only a cluster has.

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/cluster_flags.h"

namespace paceline::cli {

void add_events(CLI::App& app, Session& session) {
  struct Options {
    std::string name;
    bool watch = false;
  };
  auto* command =
      app.add_subcommand("events", "What happened to a job and its pods on a cluster, the newest last");
  auto options = std::make_shared<Options>();
  add_value(*command, "NAME", options->name, "", "Name of a job (default: all)");
  command->add_flag("-w,--watch", options->watch, "Then print those that come, until ctrl-C");
  auto flags = add_cluster_flags(*command, session, Where::kClusterOnly, true);
  command->footer(session.examples({{true, "events digits"}, {true, "events -n team-a -w"}}));
  command->callback([&session, options, flags] {
    EventsOptions events{.name = "", .watch = options->watch};
    if (!take_job_name(session, options->name, events.name)) return;
    if (!events.name.empty() && flags->all_namespaces)
      return session.fail(kExitUsage, "a job is of one namespace: say which by -n, not -A");
    on_cluster(session, *flags, events.watch ? Mode::kFollow : Mode::kOnce,
               [&](Call& call) { return list_events(call, events); });
  });
}

}  // namespace paceline::cli

// paceline scale: edits the replicas of a run's job, or of a job on a cluster.

#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "cli/commands/cluster_flags.h"

namespace paceline::cli {

void add_scale(CLI::App& app, Session& session) {
  struct Options {
    std::string name;
    std::vector<std::string> scalings;
  };
  auto* command = app.add_subcommand(
      "scale", "Change how many members a run or job has, between minReplicas and maxReplicas");
  auto options = std::make_shared<Options>();
  add_value(*command, "NAME", options->name, "", "Name of a run, or of a job on a cluster")->required();
  add_value(*command, "REPLICAS", options->scalings, "ROLE=N", "How many of a role: worker=4")->required();
  auto flags = add_cluster_flags(*command, session, Where::kBoth);
  command->footer(
      session.examples({{false, "scale digits worker=4"}, {true, "scale digits worker=4 -n team-a"}}));
  command->callback([&session, options, flags] {
    std::string name;
    if (!take_name(session, *flags, options->name, name)) return;
    const auto scalings = parse_scalings(options->scalings);
    if (!scalings.ok()) return session.fail(scalings.status());
    on_jobs(session, *flags, Mode::kOnce, [&](Call& call) { return scale_job(call, name, *scalings); });
  });
}

}  // namespace paceline::cli

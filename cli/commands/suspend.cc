// paceline suspend, resume: edits spec.runPolicy.suspend of runs, or of jobs on a cluster.

#include <CLI/CLI.hpp>
#include <memory>
#include <vector>

#include "cli/commands/cluster_flags.h"

namespace paceline::cli {

namespace {

void add_suspension(CLI::App& app, Session& session, const char* name, bool suspend) {
  auto* command = app.add_subcommand(
      name, suspend ? "Stop the members of a run or job; it can go on later, from its newest checkpoint"
                    : "Let a suspended run or job go on, from its newest checkpoint");
  auto names = std::make_shared<std::vector<std::string>>();
  add_value(*command, "NAME", *names, "", "Names of runs, or of jobs on a cluster")->required();
  auto flags = add_cluster_flags(*command, session, Where::kBoth);
  command->footer(
      session.examples({{false, suspend ? "suspend digits" : "resume digits"},
                        {true, suspend ? "suspend digits -n team-a" : "resume digits -n team-a"}}));
  command->callback([&session, names, flags, suspend] {
    for (std::string& each : *names) {
      if (!take_name(session, *flags, each, each)) return;
    }
    on_jobs(session, *flags, Mode::kOnce, [&](Call& call) { return suspend_jobs(call, *names, suspend); });
  });
}

}  // namespace

void add_suspend(CLI::App& app, Session& session) {
  add_suspension(app, session, "suspend", true);
}

void add_resume(CLI::App& app, Session& session) {
  add_suspension(app, session, "resume", false);
}

}  // namespace paceline::cli

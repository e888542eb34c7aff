// paceline suspend, resume: edits spec.runPolicy.suspend of runs, or of jobs on a cluster.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <vector>

#include "base/text.h"
#include "cli/commands/cluster_flags.h"
#include "cli/state/suspension.h"

namespace paceline::cli {

namespace {

void suspend_runs(Session& session, const std::vector<std::string>& names, bool suspend) {
  const auto store = session.store();
  if (!store.ok()) return session.fail(store.status());
  for (const std::string& name : names) {
    const auto edited = set_suspended(*store, name, suspend);
    if (absl::IsNotFound(edited.status())) {
      session.fail(kExitNotFound, str_cat(edited.status().message(), session.cluster_hint()));
    } else if (!edited.ok()) {
      session.fail(edited.status());
    } else {
      static constexpr const char* kSaid[2][2] = {{"is not suspended", "resumed"},
                                                  {"is suspended already", "suspended"}};
      std::cout << "run \"" << name << "\" " << kSaid[suspend][*edited] << "\n";
    }
  }
}

void add_suspension(CLI::App& app, Session& session, const char* name, bool suspend) {
  auto* command = app.add_subcommand(
      name, suspend ? "Stop the members of a run or job; it can go on later, from its newest checkpoint"
                    : "Let a suspended run or job go on, from its newest checkpoint");
  auto names = std::make_shared<std::vector<std::string>>();
  command->add_option("NAME", *names, "Names of runs, or of jobs on a cluster")->type_name("")->required();
  auto flags = add_cluster_flags(*command, session, Where::kBoth);
  command->footer(
      session.examples({{false, suspend ? "suspend digits" : "resume digits"},
                        {true, suspend ? "suspend digits -n team-a" : "resume digits -n team-a"}}));
  command->callback([&session, names, flags, suspend] {
    if (!is_on_cluster(session, *flags)) return suspend_runs(session, *names, suspend);
    for (std::string& each : *names) {
      if (!take_job_name(session, each, each)) return;
    }
    on_cluster(session, *flags, Mode::kOnce, [&](Call& call) { return suspend_jobs(call, *names, suspend); });
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

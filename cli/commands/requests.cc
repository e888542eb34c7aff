// paceline checkpoint, replace: what people ask of a run or a job that trains, by annotations.

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/cluster_flags.h"

namespace paceline::cli {

namespace {

void add_request(CLI::App& app, Session& session, const char* name, const char* help, bool of_member) {
  struct Options {
    std::string name, member;
  };
  auto* command = app.add_subcommand(name, help);
  auto options = std::make_shared<Options>();
  add_value(*command, "NAME", options->name, "", "Name of a run, or of a job on a cluster")->required();
  if (of_member) add_value(*command, "MEMBER", options->member, "", "Such as worker-2")->required();
  auto flags = add_cluster_flags(*command, session, Where::kBoth);
  command->footer(
      of_member ? session.examples(
                      {{false, "replace digits worker-2"}, {true, "replace digits worker-2 -n team-a"}})
                : session.examples({{false, "checkpoint digits"}, {true, "checkpoint digits -n team-a"}}));
  command->callback([&session, options, flags, of_member] {
    std::string name;
    if (!take_name(session, *flags, options->name, name)) return;
    on_jobs(session, *flags, Mode::kFollow, [&](Call& call) {
      return of_member ? replace_member(call, name, options->member) : checkpoint_job(call, name);
    });
  });
}

}  // namespace

void add_checkpoint(CLI::App& app, Session& session) {
  add_request(app, session, "checkpoint", "Let the members of a run or job save a checkpoint now", false);
}

void add_replace(CLI::App& app, Session& session) {
  add_request(app, session, "replace",
              "Let another process or pod take over from a member of a run or job, while the others go on",
              true);
}

}  // namespace paceline::cli

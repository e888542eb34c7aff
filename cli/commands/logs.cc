// paceline logs NAME [MEMBER] [-f]: what members wrote, here or on a cluster.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/commands/cluster_flags.h"
#include "cli/number_checks.h"
#include "cli/view/age.h"

namespace paceline::cli {

void add_logs(CLI::App& app, Session& session) {
  struct Options {
    LogsOptions logs;
    std::string name, since;
    int tail = -1;
  };
  auto* command = app.add_subcommand(
      "logs", session.kubectl ? "What a job's members wrote" : "What a run's or a job's members wrote");
  auto options = std::make_shared<Options>();
  add_value(*command, "NAME", options->name, "", kNameHelp);
  add_value(*command, "MEMBER", options->logs.member, "",
            "One member, e.g. worker-1 or worker/1, or a role (default: all, each line with its member)");
  command->add_flag("-f,--follow", options->logs.log.follow, "Go on as lines come, until it ends");
  add_value(*command, "--tail", options->tail, "N", "Begin with the last N lines of each member")
      ->check(whole_number_between(0, 1'000'000));
  add_value(*command, "--since", options->since, "TIME", "Only the lines of the last 30s, 5m, 2h");
  command->add_flag("-p,--previous", options->logs.previous, "The attempt before the present one");
  auto flags = add_cluster_flags(*command, session, Where::kBoth);
  add_value(*command, "-c,--container", options->logs.log.container, "NAME",
            "Another container of the pods (default: the trainer, or an init container that failed)")
      ->group(kClusterGroup);
  command->footer(session.examples({{false, "logs --tail 20"},
                                    {false, "logs digits-allreduce"},
                                    {false, "logs digits-allreduce worker-1 --tail 20 -f"},
                                    {true, "logs digits worker/1 -f -n team-a"},
                                    {true, "logs digits --since 10m -n team-a"}}));
  command->callback([&session, options, flags] {
    const bool here = !is_on_cluster(session, *flags);
    LogsOptions wanted = options->logs;
    if (here && !wanted.log.container.empty())
      return session.fail(kExitUsage,
                          "--container is for jobs on a cluster; say which by --cluster, --context or -n");
    if (!take_name(session, *flags, options->name, wanted.name)) return;
    if (options->tail >= 0) wanted.log.tail = options->tail;
    if (!options->since.empty()) {
      const auto since = parse_age(options->since);
      if (!since.ok()) return session.fail(since.status());
      wanted.log.since = *since;
    }
    if (here) wanted.interval = std::chrono::milliseconds(500);
    wanted.to_terminal = ::isatty(STDOUT_FILENO) == 1;
    on_jobs(session, *flags, wanted.log.follow ? Mode::kFollow : Mode::kOnce,
            [&](Call& call) { return job_logs(call, wanted); });
  });
}

}  // namespace paceline::cli

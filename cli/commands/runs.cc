// paceline get, describe, delete: of runs, or of jobs on a cluster.

#include <CLI/CLI.hpp>
#include <memory>

#include "base/text.h"
#include "cli/commands/cluster_flags.h"
#include "cli/view/age.h"

namespace paceline::cli {

void add_get(CLI::App& app, Session& session) {
  auto* command = app.add_subcommand(
      "get", session.kubectl ? "List jobs, or one of them" : "List runs, newest first, or jobs of a cluster");
  struct Options {
    std::string name, output = "table";
    bool watch = false, all = false;
  };
  auto options = std::make_shared<Options>();
  add_value(*command, "NAME", options->name, "", "Name of a run, or of a job on a cluster (default: all)");
  add_value(*command, "-o,--output", options->output, "FORMAT", "How to print (default: table)")
      ->check(CLI::IsMember({"table", "wide", "json", "yaml", "name"}));
  auto flags = add_cluster_flags(*command, session, Where::kBoth, true);
  command->add_flag("-w,--watch", options->watch, "Then print those that change, until ctrl-C")
      ->group(kClusterGroup);
  command->add_flag("--all", options->all, "And jobs that are deleted, from the dashboard's history")
      ->group(kClusterGroup);
  add_dashboard_flag(*command, *flags);
  command->footer(session.examples({{false, "get"},
                                    {false, "get digits-allreduce -o json"},
                                    {true, "get -n team-a"},
                                    {true, "get -A -o wide"},
                                    {true, "get -n team-a --all --dashboard https://localhost:8090"}}));
  command->callback([&session, options, flags] {
    if (options->watch && !is_on_cluster(session, *flags))
      return session.fail(kExitUsage, "--watch is for jobs on a cluster; `paceline top` watches a run");
    if (options->all && !is_on_cluster(session, *flags))
      return session.fail(kExitUsage, "--all is for jobs on a cluster; all runs that there are are listed");
    if (options->all && options->watch)
      return session.fail(kExitUsage, "--all and --watch don't go together: a deleted job does not change");
    flags->asks_dashboard = options->all;
    GetOptions get{.name = "", .output = options->output, .watch = options->watch, .all = options->all};
    if (!take_name(session, *flags, options->name, get.name)) return;
    if (!get.name.empty() && flags->all_namespaces)
      return session.fail(kExitUsage, "a job is of one namespace: say which by -n, not -A");
    on_jobs(session, *flags, get.watch ? Mode::kFollow : Mode::kOnce,
            [&](Call& call) { return get_jobs(call, get); });
  });
}

void add_describe(CLI::App& app, Session& session) {
  auto* command = app.add_subcommand(
      "describe", session.kubectl
                      ? "Everything about one job: spec, conditions, pods, events, what to do"
                      : "Everything about one run or job: result, members, events, where its files are");
  auto name = std::make_shared<std::string>();
  add_value(*command, "NAME", *name, "", kNameHelp);
  auto flags = add_cluster_flags(*command, session, Where::kBoth);
  command->footer(session.examples(
      {{false, "describe"}, {false, "describe fashion-allreduce"}, {true, "describe digits -n team-a"}}));
  command->callback([&session, name, flags] {
    std::string job;
    if (!take_name(session, *flags, *name, job)) return;
    on_jobs(session, *flags, Mode::kOnce, [&](Call& call) { return describe_job(call, job); });
  });
}

void add_delete(CLI::App& app, Session& session) {
  struct Options {
    DeleteOptions cluster;
    std::string timeout;
    bool finished = false;
  };
  auto* command = app.add_subcommand(
      "delete", session.kubectl ? "Delete jobs with their pods"
                                : "Stop runs that go on, and remove their folders with logs, checkpoints and "
                                  "models, but not a checkpoint.location; or jobs of a cluster with "
                                  "their pods");
  auto options = std::make_shared<Options>();
  add_value(*command, "NAME", options->cluster.names, "", "Names of runs, or of jobs on a cluster");
  command->add_flag("--finished", options->cluster.finished,
                    "All that are finished; runs that were stopped, or failed with a checkpoint, stay");
  auto flags = add_cluster_flags(*command, session, Where::kBoth, true);
  command->add_flag("--wait", options->cluster.wait, "Until they are gone (the default); --wait=false: not")
      ->group(kClusterGroup);
  add_value(*command, "--timeout", options->timeout, "TIME", "Wait at most so long: 30s, 5m (default: 10m)")
      ->group(kClusterGroup);
  command
      ->add_option(
          "--cascade", options->cluster.cascade,
          "What becomes of their pods: deleted behind them (background, the default), before them, or not")
      ->group(kClusterGroup)
      ->check(CLI::IsMember({"background", "foreground", "orphan"}));
  command->footer(session.examples({{false, "delete digits-allreduce-2"},
                                    {false, "delete --finished"},
                                    {true, "delete digits -n team-a"},
                                    {true, "delete --finished -A --wait=false"}}));
  command->callback([&session, options, flags, command] {
    DeleteOptions& wanted = options->cluster;
    if (wanted.names.empty() && !wanted.finished)
      return session.fail(kExitUsage, "name what to delete, or say --finished");
    if (!is_on_cluster(session, *flags)) {
      for (const char* name : {"--wait", "--timeout", "--cascade"}) {
        if (command->get_option(name)->count() > 0)
          return session.fail(
              kExitUsage,
              str_cat(name, " is for jobs on a cluster; say which by --cluster, --context or -n"));
      }
    }
    for (std::string& name : wanted.names) {
      if (!take_name(session, *flags, name, name)) return;
    }
    if (!wanted.names.empty() && flags->all_namespaces)
      return session.fail(kExitUsage, "a job is of one namespace: say which by -n, not -A");
    if (!options->timeout.empty()) {
      const auto timeout = parse_age(options->timeout);
      if (!timeout.ok()) return session.fail(timeout.status());
      wanted.timeout = *timeout;
    }
    on_jobs(session, *flags, Mode::kOnce, [&](Call& call) { return delete_jobs(call, wanted); });
  });
}

}  // namespace paceline::cli

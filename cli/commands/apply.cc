// paceline apply -f FILE...: checks the files here, then hands them to the cluster.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <vector>

#include "cli/commands/cluster_flags.h"
#include "cli/commands/job_file.h"
#include "controller/api/json_text.h"

namespace paceline::cli {

namespace {

// Nothing is applied unless all files are right.
bool read_files(Session& session, const std::vector<std::string>& paths, std::vector<ApplyFile>& files) {
  for (const std::string& path : paths) {
    const auto job = load_job_file(path, std::cerr);
    if (!job.ok()) {
      session.fail(job.status());
      continue;
    }
    files.push_back({path, api::json_text(job->text)});
  }
  return files.size() == paths.size();
}

}  // namespace

void add_apply(CLI::App& app, Session& session) {
  struct Options {
    std::vector<std::string> files;
    std::string dry_run;
    bool force = false;
  };
  auto* command = app.add_subcommand("apply", "Create or change TrainingJobs on a cluster, from files");
  auto options = std::make_shared<Options>();
  add_value(*command, "-f,--filename,FILE", options->files, "FILE",
            "TrainingJob files, YAML or JSON; - is standard input")
      ->required();
  command
      ->add_option("--dry-run", options->dry_run, "server: the API server checks it all, and keeps nothing")
      ->check(CLI::IsMember({"server"}));
  command->add_flag("--force-conflicts", options->force,
                    "Take over fields that others have set to other values");
  auto flags = add_cluster_flags(*command, session, Where::kClusterOnly);
  command->footer(session.examples({{true, "apply -f job.yaml"},
                                    {true, "apply -f one.yaml -f two.yaml -n team-a"},
                                    {true, "apply -f - --dry-run=server <job.yaml"}}));
  command->callback([&session, options, flags] {
    std::vector<ApplyFile> files;
    if (!read_files(session, options->files, files)) return;
    const ApplyOptions apply{
        .dry_run = !options->dry_run.empty(), .force = options->force, .ns_given = !flags->ns.empty()};
    on_cluster(session, *flags, Mode::kOnce, [&](Call& call) { return apply_jobs(call, files, apply); });
  });
}

}  // namespace paceline::cli

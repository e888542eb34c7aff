// paceline explain FILE: the planner's decisions for a job, from nothing to running, without doing any of it.
// paceline explain NAME: why a run is as it is, or its decision for a job of a cluster, as it is now.

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>
#include <string>

#include "base/cuda_build.h"
#include "base/pluralize.h"
#include "base/processors.h"
#include "base/regular_file.h"
#include "base/text.h"
#include "cli/commands/cluster_flags.h"
#include "cli/commands/job_file.h"
#include "cli/commands/straggler_replay.h"
#include "cli/run/checkpoint_place.h"
#include "cli/run/run_setup.h"
#include "cli/session.h"
#include "cli/view/device_text.h"
#include "cli/view/outline_text.h"
#include "cli/view/terminal.h"
#include "controller/api/print.h"
#include "controller/api/training_spec.h"
#include "controller/plan/explain.h"
#include "controller/plan/kubernetes_limits.h"
#include "controller/plan/pods.h"
#include "controller/reconcile/what_if.h"

namespace paceline::cli {

namespace {

void print_table(const char* name, std::int64_t width, const api::Table& table) {
  std::cout << "  table \"" << name << "\" on the servers: rows of " << with_commas(width)
            << (width == 1 ? " float" : " floats") << ", trained by " << api::name(table.optimizer.type)
            << ", ";
  if (table.max_rows == 0) {
    std::cout << "as many as the data has\n";
  } else {
    std::cout << "at most " << with_commas(table.max_rows) << " (" << api::name(table.eviction) << " goes)\n";
  }
}

// What is trained on what, ahead of the planner's decisions.
void print_outline(const JobFile& file, const absl::StatusOr<RunStore>& store) {
  std::cout << "TrainingJob " << file.job.metadata.ns << "/" << file.job.metadata.name << ": "
            << members_text(file.job) << "\n";
  for (const std::string& line : outline_lines(file.job)) std::cout << "  " << line << "\n";
  for (const std::string& line : device_lines(file.job, device_environment(), built_with_cuda()))
    std::cout << "  " << line << "\n";
  const api::Training& training = *file.job.spec.training;
  for (const std::string& input : training.data.train.inputs) {
    std::cout << "  training data: " << api::resolve_path(file.base_folder, input) << "\n";
  }
  if (training.data.format == api::DataFormat::kClicks) {
    std::cout << "  training data: " << with_commas(training.data.clicks.samples)
              << " synthetic click logs of " << training.data.clicks.vocabularies.size() << " fields\n";
  }
  if (training.model.type == api::ModelType::kWideAndDeep) {
    print_table("wide", 1, training.model.tables.wide);
    print_table("deep", training.model.embedding, training.model.tables.deep);
  }
  const DataFiles data = look_for_data_files(file);
  for (const std::string& missing : data.missing) {
    std::cout << "  not on this machine, so `run` would refuse the job: " << missing << "\n";
  }
  if (!data.unread.ok()) std::cout << "  `run` would refuse the job: " << data.unread.message() << "\n";
  if (!data.warning.empty()) std::cout << "  warning: " << data.warning << "\n";
  if (!file.job.spec.checkpoint.location.empty()) {
    const auto runs = store.ok() ? store->list().value_or(std::vector<RunState>()) : std::vector<RunState>();
    const absl::Status empty =
        check_is_empty(checkpoint_folder(file, ""), file, runs, store.ok() ? store->where() : "");
    if (!empty.ok())
      std::cout << "  `run` without --resume would refuse the job: " << empty.message() << "\n";
  }
  std::cout << "\n";
}

void print_what_if(const plan::Observed& observed) {
  const auto answers = reconcile::if_a_member_dies(observed.job, observed.limits, observed.now);
  std::cout << "\n";
  for (const std::string& line : reconcile::what_if_lines(answers)) std::cout << line << "\n";
}

// The plan is that of a cluster's controller: most of such jobs run there.
void print_own_programs(const JobFile& file, plan::Observed observed) {
  observed.limits = plan::kubernetes_limits();
  std::cout << "TrainingJob " << file.job.metadata.ns << "/" << file.job.metadata.name << ": "
            << pluralize(plan::desired_slots(file.job).size(), "pod that runs its template's own program",
                         "pods that run their templates' own programs")
            << "\n"
            << "  this is what a cluster does with it (`paceline apply -f " << file.path
            << "`); `paceline run` starts its commands on this machine\n\n"
            << plan::explain_job(observed);
  print_what_if(observed);
}

void explain_file(Session& session, const ClusterFlags& flags, const std::string& file, bool with_job) {
  auto job = load_job_file(file, std::cerr);
  if (absl::IsNotFound(job.status()) && file.find('/') == std::string::npos && !with_job) {
    return on_jobs(session, flags, Mode::kOnce, [&](Call& call) {
      const absl::Status status = explain_job(call, file);
      return absl::IsNotFound(status)
                 ? absl::NotFoundError(str_cat(job.status().message(), "; and ", status.message()))
                 : status;
    });
  }
  if (!job.ok()) return session.fail(job.status());
  const bool own_programs = !job->job.spec.training;
  if (!own_programs) {
    make_local(*job, std::cerr);
    if (const absl::Status status = check_devices(*job); !status.ok()) return session.fail(status);
  }
  if (with_job) std::cout << api::print_yaml(job->job) << "---\n";
  plan::Observed observed;
  observed.job = job->job;
  observed.job_uid = job->job.metadata.name;
  observed.now = session.clock.wall_now();
  if (own_programs) return print_own_programs(*job, observed);
  observed.limits.cores = usable_processors();
  observed.limits.worker_program = {"paceline-worker"};
  observed.limits.base_folder = job->base_folder;
  print_outline(*job, session.store());
  std::cout << plan::explain_job(observed);
  print_what_if(observed);
}

void explain_stragglers(Session& session, const std::string& name) {
  const auto store = session.store();
  if (!store.ok()) return session.fail(store.status());
  const auto run = store->get(name);
  if (!run.ok()) return session.fail(run.status());
  constexpr std::size_t kMaxMetricsBytes = std::size_t{1} << 30;
  const auto text = read_regular_file(run->folder + "/metrics.jsonl", kMaxMetricsBytes);
  if (!text.ok()) return session.fail(text.status());
  for (const std::string& line : replay_lines(replay_stragglers(*text))) std::cout << line << "\n";
}

}  // namespace

void add_explain(CLI::App& app, Session& session) {
  auto* command = app.add_subcommand(
      "explain", session.kubectl ? "Say what the controller would do about a job now, and why"
                                 : "Say what `run` would do with a file, or how a run or a job is, and why");
  auto what = std::make_shared<std::string>();
  auto with_job = std::make_shared<bool>(false);
  add_value(
      *command, session.kubectl ? "NAME" : "FILE", *what, "",
      session.kubectl
          ? "Name of a job"
          : "TrainingJob file, YAML or JSON, - is standard input; or the name of a run, or of a job on a "
            "cluster")
      ->required();
  if (!session.kubectl)
    command->add_flag("--job", *with_job, "Print the job of the file with all defaults filled in, too");
  auto stragglers = std::make_shared<bool>(false);
  if (!session.kubectl)
    command->add_flag("--stragglers", *stragglers,
                      "Of a run: put its recorded steps through the detector of stragglers once more");
  auto flags = add_cluster_flags(*command, session, Where::kBoth);
  command->footer(session.examples({{false, "explain examples/digits-allreduce.yaml"},
                                    {false, "explain digits"},
                                    {false, "explain digits --stragglers"},
                                    {true, "explain digits -n team-a"}}));
  command->callback([&session, what, with_job, stragglers, flags] {
    if (*stragglers && (*with_job || is_on_cluster(session, *flags)))
      return session.fail(kExitUsage, "--stragglers is for runs of this machine: their steps are recorded");
    if (*stragglers) return explain_stragglers(session, *what);
    if (!is_on_cluster(session, *flags)) return explain_file(session, *flags, *what, *with_job);
    if (*with_job)
      return session.fail(kExitUsage, "--job is for files; `get NAME -o yaml` prints a job of the cluster");
    std::string name;
    if (!take_job_name(session, *what, name)) return;
    on_cluster(session, *flags, Mode::kOnce, [&](Call& call) { return explain_job(call, name); });
  });
}

}  // namespace paceline::cli

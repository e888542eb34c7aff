#include "cli/run/run_setup.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/cuda_build.h"
#include "base/file.h"
#include "base/program.h"
#include "base/regular_file.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/run/checkpoint_lock.h"
#include "cli/run/checkpoint_place.h"
#include "cli/run/resume.h"
#include "cli/view/device_text.h"
#include "cli/view/gradients_text.h"
#include "cli/view/run_cells.h"
#include "controller/api/parse.h"
#include "controller/api/source_text.h"

namespace paceline::cli {

namespace {

constexpr std::size_t kOwnDescriptors = 22, kDescriptorsPerMember = 3;

// A member's libraries and the stacks of its threads need so much. The model needs its own on top.
constexpr std::uint64_t kMemberAddressSpace = std::uint64_t{512} << 20;

// A pod's image may have a program; a process of this machine is a command.
absl::Status check_programs(const JobFile& job, const RunOptions& options) {
  if (options.resume)
    return absl::InvalidArgumentError(
        str_cat("--resume goes on from a checkpoint of the built-in trainer, and ", job.path,
                " has no spec.training: run it anew; what its program has saved is the program's to find"));
  const api::ReplicaSpecs& roles = job.job.spec.replica_specs;
  for (const auto& [role, replica] : {std::pair{"chief", &roles.chief},
                                      {"worker", &roles.worker},
                                      {"ps", &roles.ps},
                                      {"evaluator", &roles.evaluator}}) {
    if (!*replica || (*replica)->replicas == 0) continue;
    if ((*replica)->container && !(*replica)->container->command.empty()) continue;
    return absl::FailedPreconditionError(
        str_cat(job.path, ": spec.replicaSpecs.", role,
                ": a local run starts a command, and the container names none (its image's own runs on "
                "Kubernetes alone); give it a command, or `kubectl apply` the job"));
  }
  return absl::OkStatus();
}

absl::StatusOr<JobFile> read_job(const RunOptions& options) {
  PL_ASSIGN_OR_RETURN(JobFile job, load_job_file(options.file, std::cerr));
  if (!job.job.spec.training) PL_RETURN_IF_ERROR(check_programs(job, options));
  make_local(job, std::cerr);
  return job;
}

absl::Status check_address_space() {
  struct rlimit limit {};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur >= kMemberAddressSpace) return absl::OkStatus();
  return absl::ResourceExhaustedError(str_cat("a member needs ", kMemberAddressSpace >> 10,
                                              " KiB of address space at least, and ulimit -v allows ",
                                              limit.rlim_cur >> 10, ": raise it"));
}

// Finds what the run lacks (data files, address space, descriptors) before anything is written.
absl::Status check_machine(const JobFile& job, const RunStore& store) {
  PL_RETURN_IF_ERROR(check_address_space());
  for (const std::string& path : {job.path, job.base_folder, store.state_folder()}) {
    if (!api::is_utf8(path)) return absl::InvalidArgumentError(str_cat(path, ": paths must be UTF-8"));
  }
  const DataFiles data = look_for_data_files(job);
  if (!data.warning.empty()) std::cerr << job.path << ": warning: " << data.warning << "\n";
  PL_RETURN_IF_ERROR(with_context(data.unread, "spec.training.data"));
  if (!data.missing.empty()) {
    return absl::NotFoundError(str_cat("spec.training.data: no file ", absl::StrJoin(data.missing, ", "),
                                       "; relative paths are relative to the job's folder, ",
                                       job.base_folder));
  }
  const auto& evaluator = job.job.spec.replica_specs.evaluator;
  const auto members = static_cast<std::size_t>(api::member_count(job.job) + api::standby_count(job.job) +
                                                (evaluator ? evaluator->replicas : 0));
  return reserve_descriptors(kOwnDescriptors + kDescriptorsPerMember * members);
}

// The run stands at its checkpoint until its members have taken a step. An owner that was lost may have told
// of fewer than were saved.
void note_beginning(const FoundCheckpoint& newest, const JobFile& job, RunState& earlier, RunState& state) {
  const Step step = newest.progress.step;
  earlier.progress.step = std::max(earlier.progress.step, step);
  state.checkpoint = newest.path;
  state.progress.step = step;
  state.progress.total_steps = job.job.spec.training->steps.value_or(earlier.progress.total_steps);
}

// A new run for the checkpoints of a deleted one; its state says nothing of that but where it is.
absl::StatusOr<RunState> adopt(const RunStore& store, RunSetup& setup) {
  PL_ASSIGN_OR_RETURN(setup.run, store.create(setup.job.job.metadata.name));
  setup.adopts = true;
  RunState earlier;
  earlier.name = setup.run->name();
  earlier.folder = setup.run->folder();
  return earlier;
}

// Takes over the run `name`; empty: run_to_resume(), or adopt() where no run of the job is left.
absl::StatusOr<RunState> take_over(const RunStore& store, std::string name, RunSetup& setup) {
  if (name.empty()) {
    const auto runs = store.runs_of(setup.job.job.metadata.name);
    if (absl::IsNotFound(runs.status())) {
      PL_ASSIGN_OR_RETURN(const std::vector<RunState> all, store.list());
      if (holds_orphans(setup.job, all)) return adopt(store, setup);
    }
    PL_RETURN_IF_ERROR(runs.status());
    RunToResume chosen = run_to_resume(*runs, setup.job);
    name = std::move(chosen.name);
    setup.passed_over = std::move(chosen.passed_over);
  }
  PL_ASSIGN_OR_RETURN(RunState earlier, store.get(name));
  PL_ASSIGN_OR_RETURN(setup.run, store.reopen(name));
  return earlier;
}

absl::Status reopen(const RunStore& store, const std::string& wanted, RunSetup& setup) {
  PL_ASSIGN_OR_RETURN(RunState earlier, take_over(store, wanted, setup));
  const OwnedRun& run = *setup.run;
  const std::string& name = run.name();
  const auto newest = newest_checkpoint(setup.job, run.folder());
  if (!newest.ok()) return with_context(newest.status(), str_cat("run \"", name, "\" can't go on"));
  PL_ASSIGN_OR_RETURN(const std::vector<RunState> all, store.list());
  PL_RETURN_IF_ERROR(check_place(earlier, setup.job, *newest, all));
  PL_RETURN_IF_ERROR(check_resume(earlier, setup.job, *newest, store.where()));
  if (*newest) {
    PL_RETURN_IF_ERROR(with_context(check_readable(**newest), str_cat("run \"", name, "\" can't go on")));
  }
  setup.workers = workers_text(earlier, setup.job);
  if (*newest) note_beginning(**newest, setup.job, earlier, setup.state);
  auto text = read_regular_file(run.path("job.yaml"), api::kMaxFileBytes);
  if (!text.ok() && !absl::IsNotFound(text.status())) return text.status();
  setup.earlier = EarlierRun{earlier, std::move(text).value_or("")};
  return setup.run->make_reserve();
}

absl::Status open_folder(const RunStore& store, const RunOptions& options, RunSetup& setup) {
  if (options.resume) return reopen(store, *options.resume, setup);
  if (options.name) {
    PL_ASSIGN_OR_RETURN(setup.run, store.create_named(*options.name));
  } else {
    PL_ASSIGN_OR_RETURN(setup.run, store.create(setup.job.job.metadata.name));
  }
  return absl::OkStatus();
}

absl::Status write_beginning(const Session& session, const RunStore& store, RunSetup& setup) {
  const JobFile& job = setup.job;
  OwnedRun& run = *setup.run;
  if (const std::string folder = checkpoint_folder(job, run.folder()); !folder.empty()) {
    const std::vector<RunState> runs = store.list().value_or(std::vector<RunState>());
    PL_ASSIGN_OR_RETURN(setup.checkpoint_lock, lock_checkpoints(folder, runs));
    if (!setup.earlier) PL_RETURN_IF_ERROR(check_is_empty(folder, job, runs, store.where()));
  }
  RunState& state = setup.state;
  state.name = run.name();
  state.job = job.job.metadata.name;
  state.ns = job.job.metadata.ns;
  state.job_file = job.path;
  state.folder = run.folder();
  state.owner_pid = ::getpid();
  state.written = state.created = format_wall_time(session.clock.wall_now());
  if (setup.earlier && !setup.earlier->state.created.empty()) state.created = setup.earlier->state.created;
  if (setup.earlier) state.first_step_seconds = setup.earlier->state.first_step_seconds;
  if (job.job.spec.training) state.target = target_text(*job.job.spec.training);
  state.gradients = step_gradients(job.job);
  PL_RETURN_IF_ERROR(write_file_atomically(run.path("job.yaml"), job.text));
  PL_RETURN_IF_ERROR(run.write_state(state, true));
  PL_ASSIGN_OR_RETURN(setup.metrics, MetricsFile::open(run.path("metrics.jsonl"), seconds_before(setup)));
  return absl::OkStatus();
}

void give_back(const RunOptions& options, const RunSetup& setup) {
  if (setup.run == nullptr) return;
  if (!options.resume || setup.adopts) return setup.run->discard();
  if (setup.earlier) {
    (void)write_last_state(setup, false);
  } else {
    setup.run->drop_reserve();
  }
}

absl::Status try_to_set_up(const Session& session, const RunOptions& options, RunSetup& setup) {
  PL_RETURN_IF_ERROR(check_devices(setup.job));
  setup.warning = idle_gpu_note(setup.job.job, device_environment(), built_with_cuda(), has_nvidia_gpu());
  PL_ASSIGN_OR_RETURN(const RunStore store, session.store());
  PL_RETURN_IF_ERROR(check_machine(setup.job, store));
  PL_RETURN_IF_ERROR(open_folder(store, options, setup));
  return write_beginning(session, store, setup);
}

}  // namespace

DeviceVariables device_environment() {
  return {std::getenv("PACELINE_DEVICE"), std::getenv("PACELINE_CUDA_GRAPHS")};
}

absl::Status read_run_job(const RunOptions& options, RunSetup& setup) {
  if (options.resume && options.name) {
    return absl::InvalidArgumentError("--resume continues a run under its own name: leave --name out");
  }
  PL_ASSIGN_OR_RETURN(setup.job, read_job(options));
  return absl::OkStatus();
}

double seconds_before(const RunSetup& setup) {
  return setup.earlier ? setup.earlier->state.elapsed_seconds : 0;
}

absl::Status check_devices(const JobFile& job) {
  const DeviceVariables all = device_environment();
  PL_RETURN_IF_ERROR(parse_device_settings(all).status());
  const api::ReplicaSpecs& roles = job.job.spec.replica_specs;
  for (const auto* role : {&roles.chief, &roles.worker, &roles.ps, &roles.evaluator}) {
    if (!*role) continue;
    const DeviceVariables own = device_variables(**role, all);
    const absl::Status status = parse_device_settings(own).status();
    if (status.ok()) continue;
    const auto refers = [](const char* value) {
      return value != nullptr && std::strstr(value, "$(") != nullptr;
    };
    return absl::Status(status.code(), str_cat(job.path, ": env: ", status.message(),
                                               refers(own.device) || refers(own.cuda_graphs)
                                                   ? "; only pods put values in for $(NAME)"
                                                   : ""));
  }
  return absl::OkStatus();
}

absl::Status set_up_run(const Session& session, const RunOptions& options, RunSetup& setup) {
  const absl::Status status = try_to_set_up(session, options, setup);
  if (!status.ok()) give_back(options, setup);
  return status;
}

absl::Status write_last_state(const RunSetup& setup, bool took_step) {
  const bool untouched = setup.earlier && !setup.adopts && !took_step && setup.state.phase != "Succeeded";
  if (!untouched) return setup.run->write_last_state(setup.state);
  if (!setup.earlier->job_text.empty())
    PL_RETURN_IF_ERROR(write_file_atomically(setup.run->path("job.yaml"), setup.earlier->job_text));
  return setup.run->write_last_state(setup.earlier->state);
}

}  // namespace paceline::cli

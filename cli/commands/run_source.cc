#include "cli/commands/run_source.h"

#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "base/file.h"
#include "base/regular_file.h"
#include "base/status.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "cli/cluster/job_view.h"
#include "cli/commands/run_log.h"
#include "cli/run/checkpoint_place.h"
#include "cli/session.h"
#include "cli/state/owner_process.h"
#include "cli/state/run_edits.h"
#include "cli/state/stopped.h"
#include "controller/api/checkpoint_step.h"
#include "controller/api/json_text.h"
#include "controller/api/parse.h"
#include "controller/cluster/kube/resources.h"
#include "controller/cluster/kube/times.h"
#include "controller/plan/attempts.h"
#include "runtime/checkpoint/checkpoint_store.h"

namespace paceline::cli {

namespace {

using kube::Json;

constexpr std::size_t kMostEventsBytes = 16 << 20;  // the newest
constexpr int kStopLimitMs = 15'000;                // a run that is to end in order
constexpr int kKillLimitMs = 5'000;                 // the same, at once

// The result of JobSource::await_suspended(), of a run whose members have left.
absl::StatusOr<std::string> lost_by_suspension(const RunState& run) {
  if (run.status.progress.step <= api::checkpoint_step(run.status.last_checkpoint).value_or(0)) return "";
  const auto failed = std::ranges::find(run.status.conditions, api::kCheckpointFailed, &api::Condition::type);
  if (failed == run.status.conditions.end() || !failed->status) return run.message;
  return absl::DataLossError(str_cat("run \"", run.name, "\" is ", run.message));
}

// All 0 where there is none.
FileVersion version_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return {};
  return {static_cast<std::int64_t>(info.st_ino), info.st_ctim.tv_sec, info.st_ctim.tv_nsec};
}

Json job_of(const std::string& folder) {
  const std::string path = folder + "/job.yaml";
  const auto text = read_regular_file(path, api::kMaxFileBytes);
  if (!text.ok() || !api::parse_training_job(*text, path).job) return Json::object();
  return Json::parse(api::json_text(*text), nullptr, false);
}

}  // namespace

const Json& RunSource::job_in(const std::string& folder) {
  const FileVersion version = version_of(folder + "/job.yaml");
  if (jobs_.size() >= kMostJobs) jobs_.clear();
  Job& job = jobs_[folder];
  if (job.version != version || job.json.is_null()) job = {version, job_of(folder)};
  return job.json;
}

Json RunSource::object_of(const RunState& state) {
  Json run = Json::parse(to_json(state, -1)), status = run.at("status");
  run.erase("status");
  // The folder knows better than the controller's last word: an owner may be gone.
  status["phase"] = state.phase == kStopped ? "Failed" : state.phase;
  status["reason"] = state.reason;
  status["message"] = state.message;
  status["run"] = std::move(run);
  const Json& job = job_in(state.folder);
  const std::string uid = str_cat(state.name, "-", state.created);
  Json object = {{"metadata", {{"name", state.name}, {"namespace", state.ns}, {"uid", uid}}},
                 {"spec", kube::at(job, {"spec"})},
                 {"status", std::move(status)}};
  if (const Json& annotations = kube::at(job, {"metadata", "annotations"}); annotations.is_object())
    object["metadata"]["annotations"] = annotations;
  if (!state.created.empty()) object["metadata"]["creationTimestamp"] = state.created;
  return object;
}

absl::StatusOr<Json> RunSource::object_of(const absl::StatusOr<RunState>& state) {
  PL_RETURN_IF_ERROR(state.status());
  return object_of(*state);
}

namespace {

absl::Status does_not_end(std::int64_t pid) {
  const std::string owner = str_cat("process ", pid, ", which owns it, ");
  if (!stands_still(pid))
    return absl::DeadlineExceededError(str_cat(owner, "does not end; kill it by kill -9"));
  return absl::DeadlineExceededError(str_cat(owner,
                                             "is stopped (ctrl-Z, SIGSTOP); let it go on by `kill -CONT ",
                                             pid, "`, and delete the run then"));
}

absl::Status stop_run(const RunStore& store, const RunState& run) {
  const UniqueFd owner(static_cast<int>(::syscall(SYS_pidfd_open, run.owner_pid, 0)));
  const auto now = store.get(run.name);  // still owned: then it is the owner that the descriptor is about
  if (!now.ok() || is_finished(*now)) return now.status();
  if (!owner.valid()) return errno_status(errno, str_cat("process ", run.owner_pid, ", which owns it"));
  // It would take the signals when it goes on, and nobody would then delete the run.
  if (stands_still(run.owner_pid)) return does_not_end(run.owner_pid);
  siginfo_t notice{};
  notice.si_signo = SIGTERM;
  notice.si_code = SI_QUEUE;
  notice.si_pid = ::getpid();
  notice.si_uid = ::getuid();
  notice.si_value.sival_int = kDeletionNotice;
  for (const int limit_ms : {kStopLimitMs, kKillLimitMs}) {
    if (::syscall(SYS_pidfd_send_signal, owner.get(), SIGTERM, &notice, 0) != 0 && errno != ESRCH)
      return errno_status(errno, str_cat("stopping process ", run.owner_pid, ", which owns it"));
    pollfd ended{owner.get(), POLLIN, 0};
    if (::poll(&ended, 1, limit_ms) > 0) return absl::OkStatus();
  }
  return does_not_end(run.owner_pid);
}

}  // namespace

absl::StatusOr<JobSource::Listed> RunSource::list_jobs(const std::string&) {
  left_out_.clear();
  PL_ASSIGN_OR_RETURN(const std::vector<RunState> runs, store_.list(&left_out_));
  Listed listed;
  for (const RunState& run : runs) listed.objects.push_back(object_of(run));
  return listed;
}

absl::StatusOr<Json> RunSource::job(const std::string&, const std::string& name) {
  return object_of(store_.get(name));
}

absl::StatusOr<Json> RunSource::choose(const std::string&, const std::string& name) {
  return object_of(store_.choose(name));
}

absl::StatusOr<std::vector<kube::SlimPod>> RunSource::logged_pods(const std::string&,
                                                                  const std::string& name) {
  PL_ASSIGN_OR_RETURN(const RunState run, store_.get(name));
  PL_ASSIGN_OR_RETURN(std::vector<kube::SlimPod> pods, cli::logged_pods(run.folder + "/logs"));
  api::TrainingJob job;
  job.status = run.status;
  job.spec.training.emplace();  // as every run
  // Each session of a run counts its pods anew: those beyond the present ones are of an earlier session, and
  // so before all of this one's.
  constexpr std::int32_t kBefore = 1 << 30;
  for (kube::SlimPod& pod : pods) {
    if (pod.attempt > plan::wanted_attempt(job, pod.role, pod.index)) pod.attempt -= kBefore;
  }
  return pods;
}

absl::Status RunSource::read_log(const kube::SlimPod& pod, const LogRequest& request, const LogSink& sink,
                                 std::stop_token stop) {
  return read_run_log(pod.uid, request, clock_.wall_now(), pause_, sink, stop);
}

absl::StatusOr<JobSource::Events> RunSource::events(const std::string&, const std::string& name) {
  PL_ASSIGN_OR_RETURN(const RunState run, store_.get(name));
  const auto text = read_last_lines(run.folder + "/events.jsonl", kMostEventsBytes);
  Events result;
  if (absl::IsNotFound(text.status())) return result;
  PL_RETURN_IF_ERROR(text.status());
  for (std::size_t begin = 0; begin < text->size();) {
    const std::size_t end = std::min(text->find('\n', begin), text->size());
    const Json event = Json::parse(text->substr(begin, end - begin), nullptr, false);
    begin = end + 1;
    if (!event.is_object()) continue;  // a line torn by a crash
    EventView view;
    view.last = kube::parse_time(kube::text_at(event, {"time"}));
    view.warning = kube::text_at(event, {"type"}) == "Warning";
    view.reason = kube::text_at(event, {"reason"});
    view.object = name;
    view.message = kube::text_at(event, {"message"});
    result.events.push_back(std::move(view));
  }
  return result;
}

absl::StatusOr<Json> RunSource::patch(const std::string& ns, const std::string& name, const Json& patch,
                                      const std::string& what) {
  if (const std::string& uid = kube::text_at(patch, {"metadata", "uid"}); !uid.empty()) {
    PL_ASSIGN_OR_RETURN(const Json now, job(ns, name));
    PL_RETURN_IF_ERROR(jobs::check_uid(now, uid));
  }
  RunEdit edit;
  if (const Json& suspend = kube::at(patch, {"spec", "runPolicy", "suspend"}); suspend.is_boolean())
    edit.suspend = suspend.get<bool>();
  if (const Json& roles = kube::at(patch, {"spec", "replicaSpecs"}); roles.is_object()) {
    for (const auto& [key, role] : roles.items()) {
      if (kube::role_named(key) == Role::kWorker) edit.workers = kube::integer_at(role, {"replicas"});
    }
  }
  for (const char* const annotation : {api::kCheckpointRequest, api::kReplaceRequest}) {
    if (const std::string& text = kube::text_at(patch, {"metadata", "annotations", annotation});
        !text.empty())
      edit.requests[annotation] = text;
  }
  for (Duration waited{};; waited += kBetweenEdits) {
    const absl::Status edited = edit_run(store_, name, edit, what.c_str());
    if (edited.ok()) return job(ns, name);
    if (!absl::IsAborted(edited)) return edited;
    if (waited >= kEditLimit) return absl::DeadlineExceededError(edited.message());
    if (!pause_(kBetweenEdits, {})) return absl::CancelledError("stopped");
  }
}

// The owner writes the run's status, and looks at the job right after that.
absl::Status RunSource::await_owner(const std::string& name, const char* verb, std::ostream& err) {
  std::optional<FileVersion> first;
  bool told = false;
  for (Duration waited{};; waited += kBetweenLooks) {
    PL_ASSIGN_OR_RETURN(const RunState run, store_.get(name));
    PL_RETURN_IF_ERROR(goes_on(run, verb, store_.where()));
    const FileVersion now = version_of(run.folder + "/status.json");
    if (first && now != *first) return absl::OkStatus();
    first = now;
    const std::string owner = str_cat("process ", run.owner_pid, ", which owns run \"", name, "\", ");
    const bool still = stands_still(run.owner_pid);
    const std::string how =
        str_cat("is stopped (ctrl-Z, SIGSTOP); `kill -CONT ", run.owner_pid, "` lets it go on");
    if (waited >= kEditLimit) {
      return absl::DeadlineExceededError(str_cat(owner, "has not acted within ", format_duration(kEditLimit),
                                                 ", and does so when it goes on",
                                                 still ? str_cat(": it ", how) : ""));
    }
    if (still && !std::exchange(told, true)) err << "waiting for " << owner << "and " << how << std::endl;
    if (!pause_(kBetweenLooks, {})) return absl::CancelledError("stopped");
  }
}

// The owner may write that the last member has left before it writes what that one saved: one status more.
absl::StatusOr<std::string> RunSource::await_suspended(const std::string& name, std::ostream& err) {
  std::optional<FileVersion> first;
  for (Duration waited{};; waited += kBetweenLooks) {
    PL_ASSIGN_OR_RETURN(const RunState run, store_.get(name));
    PL_RETURN_IF_ERROR(goes_on(run, "suspend", store_.where()));
    const bool left = run.phase == api::name(api::Phase::kSuspended) &&
                      std::ranges::none_of(run.status.replica_statuses, &api::ReplicaStatus::active);
    const FileVersion now = version_of(run.folder + "/status.json");
    if (left && first && now != *first) return lost_by_suspension(run);
    if (left && !first) first = now;
    PL_ASSIGN_OR_RETURN(const Json edited, job("", name));
    if (!read_job(edited).suspended)
      return absl::AbortedError(str_cat("run \"", name, "\" was resumed meanwhile"));
    if (waited >= kEditLimit && stands_still(run.owner_pid)) {
      return absl::DeadlineExceededError(
          str_cat("process ", run.owner_pid, ", which owns run \"", name,
                  "\", is stopped (ctrl-Z, SIGSTOP), and its members may not have left; `kill -CONT ",
                  run.owner_pid, "` lets it go on"));
    }
    if (waited >= kSuspensionLimit) {
      return absl::DeadlineExceededError(
          str_cat("run \"", name, "\" is to be suspended, and its members have not left within ",
                  format_duration(kSuspensionLimit), "; `paceline logs ", name, store_.where(),
                  "` says what they do"));
    }
    if (waited == kToldAfter)
      err << "waiting for its members, which save a checkpoint and leave" << std::endl;
    if (!pause_(kBetweenLooks, {})) return absl::CancelledError("stopped");
  }
}

absl::StatusOr<Json> RunSource::remove(const std::string&, const std::string& name, const std::string& uid,
                                       const std::string&) {
  PL_ASSIGN_OR_RETURN(RunState run, store_.get(name));
  PL_RETURN_IF_ERROR(jobs::check_uid(object_of(run), uid));
  if (!is_finished(run)) {
    out_ << "stopping run \"" << name << "\"" << std::endl;
    const absl::Status stopped = stop_run(store_, run);
    if (!absl::IsNotFound(stopped)) PL_RETURN_IF_ERROR(with_context(stopped, str_cat("run \"", name, "\"")));
    run = store_.get(name).value_or(run);  // with its last checkpoint
  }
  const std::string left = left_checkpoints_text(run, store_.list().value_or(std::vector<RunState>()));
  for (Duration waited{};; waited += kBetweenEdits) {
    const absl::Status removed = store_.remove(name);
    if (removed.ok() || absl::IsNotFound(removed)) break;  // another `delete` was faster
    if (!absl::IsFailedPrecondition(removed) || waited >= kEditLimit) return removed;
    if (!pause_(kBetweenEdits, {})) return absl::CancelledError("stopped");
  }
  if (!left.empty()) out_ << left << std::endl;
  return object_of(run);
}

// The status may not know of the newest one, and where the job has a place for them, only it does.
bool RunSource::has_checkpoint(const RunState& run) const {
  std::error_code error;
  if (!run.checkpoint.empty() && std::filesystem::is_directory(run.checkpoint, error)) return true;
  const auto newest = checkpoint::CheckpointStore(run.folder + "/checkpoints", 1).peek_latest();
  return newest.ok() || checkpoint::is_no_fault_of_it(newest.status());
}

std::string RunSource::none(const std::string&, const std::string& program) const {
  if (!left_out_.empty()) return "";
  return str_cat("No runs in ", store_.state_folder(), ". Start one with `", program, " run job.yaml",
                 store_.where(), "`.");
}

}  // namespace paceline::cli

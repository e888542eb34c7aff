#include "cli/state/run_store.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_join.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/regular_file.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/state/lost_steps.h"
#include "cli/state/owner_process.h"
#include "cli/state/resume_command.h"
#include "controller/api/checkpoint_step.h"
#include "controller/api/parse.h"
#include "controller/api/scalars.h"
#include "controller/api/source_text.h"
#include "controller/cluster/kube/times.h"
#include "runtime/checkpoint/checkpoint_store.h"

namespace paceline::cli {

namespace {

constexpr std::size_t kMaxStatusBytes = 16 << 20;

constexpr Duration kOldStatus = std::chrono::seconds(15);  // a busy machine may take seconds for one
constexpr const char* kReserve = "reserve";                // room for the last status.json
constexpr std::size_t kReserveBytes = 64 << 10;

bool valid_name(const std::string& name) {
  if (name.empty() || name.size() > 100 || name[0] == '.' || name.find('/') != std::string::npos)
    return false;
  const auto control = [](unsigned char c) { return c < 0x20 || c == 0x7f; };
  return api::is_utf8(name) && std::none_of(name.begin(), name.end(), control);
}

// What a user may choose: nothing that a shell, a table or another program could stumble over.
bool good_name(const std::string& name) {
  const auto alphanumeric = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  const auto allowed = [&](char c) { return alphanumeric(c) || c == '-' || c == '_' || c == '.'; };
  return !name.empty() && name.size() <= RunStore::kMaxNameBytes && alphanumeric(name[0]) &&
         std::all_of(name.begin(), name.end(), allowed);
}

absl::Status make_folder(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  // Not by errno_status: NOT_FOUND is kept for runs.
  if (error) return absl::FailedPreconditionError(str_cat("create the folder ", path, ": ", error.message()));
  return absl::OkStatus();
}

// Written, not only asked for: not every file system can promise room.
absl::Status write_reserve(const std::string& folder) {
  return write_file_atomically(folder + "/" + kReserve, std::string(kReserveBytes, '\n'));
}

// The whole file; of an open file description, so that it goes with the process that holds it (Linux).
struct flock lock_of(short type) {
  struct flock lock {};
  lock.l_type = type;
  lock.l_whence = SEEK_SET;
  return lock;
}

// ABORTED: another process holds it.
absl::StatusOr<UniqueFd> open_lock(const std::string& folder) {
  PL_ASSIGN_OR_RETURN(RegularFile file, open_regular_file(folder + "/lock", O_RDWR | O_CREAT));
  struct flock lock = lock_of(F_WRLCK);
  if (::fcntl(file.fd.get(), F_OFD_SETLK, &lock) != 0) {
    if (errno != EAGAIN && errno != EACCES) return errno_status(errno, str_cat("lock ", folder, "/lock"));
    return absl::AbortedError(str_cat(folder, "/lock is held by another process"));
  }
  return std::move(file.fd);
}

// Asks without taking: two who ask at once don't see each other.
absl::StatusOr<bool> is_owned(const std::string& folder) {
  const auto file = open_regular_file(folder + "/lock");
  if (absl::IsResourceExhausted(file.status()) || absl::IsPermissionDenied(file.status()))
    return file.status();
  if (!file.ok()) return false;
  struct flock lock = lock_of(F_RDLCK);
  return ::fcntl(file->fd.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

// Where something in `path` could not be removed: what of it is there first.
std::string first_left(std::filesystem::path path) {
  std::error_code error;
  while (std::filesystem::symlink_status(path, error).type() == std::filesystem::file_type::directory) {
    const std::filesystem::directory_iterator inside(path, error);
    if (error || inside == std::filesystem::directory_iterator()) break;
    path = inside->path();
  }
  return path.string();
}

bool runs_own_program(const RunState& state) {
  const auto text =
      read_regular_file(state.folder + "/job.yaml", api::kMaxFileBytes);  // as print_yaml() writes it
  return text.ok() && text->find("\n  training:\n") == std::string::npos;
}

std::string file_of(const RunState& state) {
  return state.job_file.empty() ? state.folder + "/job.yaml" : state.job_file;
}

// A power cut may leave status.json empty, and who ended before its run began left none; job.yaml was synced.
RunState state_without_status(const std::string& name, const std::string& folder) {
  RunState state;
  state.name = name;
  state.folder = folder;
  const std::string path = folder + "/job.yaml";
  if (const auto text = read_regular_file(path, api::kMaxFileBytes); text.ok()) {
    if (const api::Parsed parsed = api::parse_training_job(*text, path); parsed.job) {
      state.job = parsed.job->metadata.name;
      state.ns = parsed.job->metadata.ns;
    }
  }
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 || ::stat(folder.c_str(), &info) == 0) {
    const auto since_epoch =
        std::chrono::seconds(info.st_mtim.tv_sec) + std::chrono::nanoseconds(info.st_mtim.tv_nsec);
    state.created = format_wall_time(WallTime(since_epoch));
  }
  return state;
}

}  // namespace

absl::Status OwnedRun::write_state(const RunState& state, bool durable) const {
  const std::string target = path("status.json"), text = to_json(state) + "\n";
  if (durable) return write_file_atomically(target, text);
  const std::string temporary = target + ".tmp";
  PL_ASSIGN_OR_RETURN(const RegularFile file, open_regular_file(temporary, O_WRONLY | O_CREAT | O_TRUNC));
  std::string_view rest = text;
  while (!rest.empty()) {
    const ssize_t n = ::write(file.fd.get(), rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) {
      const int error = errno;
      ::unlink(temporary.c_str());
      return errno_status(error, str_cat("write ", temporary));
    }
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::rename(temporary.c_str(), target.c_str()) != 0)
    return errno_status(errno, str_cat("rename ", temporary));
  return absl::OkStatus();
}

absl::Status OwnedRun::write_last_state(const RunState& state) const {
  drop_reserve();
  return write_state(state, true);
}

absl::Status OwnedRun::make_reserve() const {
  return write_reserve(folder_);
}

void OwnedRun::drop_reserve() const {
  ::unlink(path(kReserve).c_str());
}

void OwnedRun::discard() const {
  std::error_code ignored;
  std::filesystem::remove_all(folder_, ignored);
}

absl::StatusOr<std::unique_ptr<OwnedRun>> RunStore::create(const std::string& name) const {
  if (!valid_name(name))
    return absl::InvalidArgumentError(str_cat(api::quote(name), " can't be a run's name"));
  PL_RETURN_IF_ERROR(make_folder(runs()));
  for (int i = 1; i <= kMaxRunsPerName; ++i) {
    const std::string candidate = i == 1 ? name : str_cat(name, "-", i);
    auto made = make(candidate);
    if (!absl::IsAlreadyExists(made.status())) return made;
  }
  return absl::ResourceExhaustedError(str_cat(kMaxRunsPerName, " runs are named ", name,
                                              "-...; remove old ones with `paceline delete NAME", where(),
                                              "`"));
}

absl::StatusOr<std::unique_ptr<OwnedRun>> RunStore::create_named(const std::string& name) const {
  if (!good_name(name)) {
    return absl::InvalidArgumentError(
        str_cat(api::quote(name), " can't be a run's name; allowed: 1 to ", kMaxNameBytes,
                " letters, digits, '-', '_' and '.', the first a letter or digit"));
  }
  PL_RETURN_IF_ERROR(make_folder(runs()));
  auto made = make(name);
  if (!absl::IsAlreadyExists(made.status())) return made;
  return absl::AlreadyExistsError(str_cat("there is a run named \"", name, "\" in ", folder_,
                                          "; choose another name, go on with it by --resume ", name,
                                          ", or remove it with `paceline delete ", name, where(), "`"));
}

// ALREADY_EXISTS where something of that name is there.
absl::StatusOr<std::unique_ptr<OwnedRun>> RunStore::make(const std::string& name) const {
  const std::string folder = runs() + "/" + name;
  if (::mkdir(folder.c_str(), 0755) != 0) {
    if (errno == EEXIST) return absl::AlreadyExistsError(folder);
    return errno_status(errno, str_cat("create the folder ", folder));
  }
  auto lock = open_lock(folder);
  const absl::Status status = lock.ok() ? write_reserve(folder) : lock.status();
  std::unique_ptr<OwnedRun> run(new OwnedRun(name, folder, lock.ok() ? *std::move(lock) : UniqueFd()));
  if (status.ok()) return run;
  run->discard();
  return status;
}

absl::StatusOr<UniqueFd> RunStore::lock(const RunState& run) const {
  auto lock = open_lock(run.folder);
  if (!absl::IsAborted(lock.status())) return lock;
  const bool goes_on = !is_finished(run) && run.owner_pid > 0;
  return absl::FailedPreconditionError(str_cat(
      "run \"", run.name, "\" is held by another command, ",
      goes_on ? str_cat("the `paceline run` that trains it (pid ", run.owner_pid, ")")
              : std::string("which resumes or deletes it"),
      "; wait until that has ended: `paceline get ", shell_word(run.name), where(), "` shows the run"));
}

absl::StatusOr<std::unique_ptr<OwnedRun>> RunStore::reopen(const std::string& name) const {
  PL_ASSIGN_OR_RETURN(const RunState run, get(name));
  PL_ASSIGN_OR_RETURN(UniqueFd held, lock(run));
  return std::unique_ptr<OwnedRun>(new OwnedRun(name, run.folder, std::move(held)));
}

absl::StatusOr<RunState> RunStore::read(const std::string& name) const {
  const std::string folder = runs() + "/" + name;
  const auto look = [&]() -> absl::StatusOr<RunState> {
    PL_ASSIGN_OR_RETURN(const std::string text, read_regular_file(folder + "/status.json", kMaxStatusBytes));
    absl::StatusOr<RunState> state = parse_run_state(text);
    if (!state.ok()) return with_context(state.status(), folder + "/status.json");
    state->name = name;
    state->folder = folder;
    return state;
  };
  const auto is_settled = [](const absl::StatusOr<RunState>& state) {
    if (state.ok()) return is_finished(*state);
    return !absl::IsInvalidArgument(state.status()) && !absl::IsNotFound(state.status());
  };
  absl::StatusOr<RunState> state = look();
  // Before its lock: whoever has begun has held that.
  std::error_code error;
  const bool begun = std::filesystem::exists(folder + "/job.yaml", error);
  if (is_settled(state)) return state;
  PL_ASSIGN_OR_RETURN(const bool owned, is_owned(folder));
  if (owned) return state.ok() ? with_owner(*std::move(state)) : state;
  // The owner may have ended between our two looks: only what it wrote before it let the lock go counts.
  state = look();
  if (is_settled(state)) return state;
  if (state.ok()) return without_owner(*std::move(state));
  if (!std::filesystem::exists(folder + "/lock", error)) return state;  // nobody's run
  // Its owner may not have begun: between the folder's making and its lock nobody seems to own it.
  if (absl::IsNotFound(state.status()) && !begun) return state;
  return without_status(state_without_status(name, folder), state.status());
}

RunState RunStore::with_owner(RunState state) {
  if (state.owner_pid == 0) return state;
  if (!stands_still(state.owner_pid)) return with_age(std::move(state));
  state.reason = api::kOwnerStopped;
  state.message =
      str_cat("the `paceline run` that owns this run (pid ", state.owner_pid,
              ") is stopped (ctrl-Z, SIGSTOP), and what is told here is of the time before; `kill -CONT ",
              state.owner_pid, "` lets it go on");
  return state;
}

// The owner writes it twice a second, and goes on without it where it can't: the disk is full, say. The
// file's own time is of a file server's clock where it lies on one, which may differ from the owner's and
// ours.
RunState RunStore::with_age(RunState state) {
  const auto written = kube::parse_time(state.written);
  const Duration age = written ? SystemClock().wall_now() - *written : Duration();
  if (age < kOldStatus) return state;
  state.reason = api::kStatusOld;
  state.message =
      str_cat("its status was written ", format_duration(age), " ago, and its owner (pid ", state.owner_pid,
              ") lives: what is told here is of that time; see whether there is room in ", state.folder);
  return state;
}

// Its owner wrote its state twice a second: more is not known. But members may have saved since.
std::string RunStore::how_it_goes_on_without_owner(const RunState& state) const {
  const Step step = state.progress.step;
  if (step == 0 || runs_own_program(state)) return how_it_goes_on(state);
  Step saved = api::checkpoint_step(state.checkpoint).value_or(0);
  const std::filesystem::path told(state.checkpoint);
  const std::string folder =
      told.has_parent_path() ? told.parent_path().string() : state.folder + "/checkpoints";
  const auto newest = checkpoint::CheckpointStore(folder, 1).peek_latest();
  if (newest.ok()) saved = std::max(saved, newest->progress.step);
  const std::string heard = str_cat("it was last heard of at step ", step);
  const std::string lost = lost_steps_text(step, saved);
  if (saved == 0) {
    return str_cat(heard, ", and ", lost, "; begin anew with `paceline run ", shell_word(file_of(state)),
                   where(), "`");
  }
  return str_cat(heard, lost.empty() ? ", which is saved" : ", and ", lost,
                 "; it goes on from its newest checkpoint with `",
                 resume_command(option_, file_of(state), state.name), "`");
}

// Everything that was under way is over, as the controller would have said.
void note_over(api::Status& status) {
  constexpr const char* kOver = "the `paceline run` that owned this run ended without a word";
  status.stragglers.clear();
  for (api::StragglerReplacement& each : status.straggler_replacements) {
    if (each.outcome != api::ReplacementOutcome::kUnderWay) continue;
    each.outcome = api::ReplacementOutcome::kOverBefore;
    each.message = str_cat(kOver, " before pod ", each.successor, " took over from pod ", each.pod);
  }
  for (api::Condition& each : status.conditions) {
    using enum api::Phase;
    const bool lasts = each.type == api::name(kRunning) || each.type == api::name(kRestarting) ||
                       each.type == api::name(kSuspended) || each.type == api::kStraggling;
    if (!lasts || !each.status) continue;
    each.status = false;
    each.reason = kOwnerLost;
    each.message = kOver;
  }
}

// `state` is what its owner wrote last.
RunState RunStore::without_owner(RunState state) const {
  const std::string owner = state.owner_pid == 0 ? "" : str_cat(" (pid ", state.owner_pid, ")");
  state.phase = "Failed";
  state.reason = kOwnerLost;
  state.progress.eta_seconds.reset();
  note_all_gone(state);
  note_over(state.status);
  state.message = str_cat("the `paceline run` that owned this run", owner, " ended without a word; ",
                          how_it_goes_on_without_owner(state));
  return state;
}

// `why`: NOT_FOUND where it is missing, else it is damaged.
RunState RunStore::without_status(RunState state, const absl::Status& why) const {
  if (absl::IsNotFound(why)) return without_owner(std::move(state));
  state.phase = kUnknownPhase;
  state.reason = "StatusDamaged";
  state.message =
      str_cat("how this run ended is not known, since its status.json is damaged: ", why.message(), "; ",
              how_it_goes_on(state));
  return state;
}

std::string RunStore::how_it_goes_on(const RunState& state) const {
  if (runs_own_program(state))
    return str_cat("its program begins anew with `paceline run ", shell_word(file_of(state)), where(), "`");
  return str_cat("it goes on, from its newest checkpoint if it has one, with `",
                 resume_command(option_, file_of(state), state.name), "`");
}

std::string RunStore::where() const {
  return state_dir_words(option_);
}

absl::Status RunStore::no_name(const std::string& name) const {
  return absl::FailedPreconditionError(
      str_cat("the folder ", shell_word(name), " in ", runs(),
              " has a name that no run can have; give it another, as in `mv -- ",
              shell_word(runs() + "/" + name), " ", shell_word(runs() + "/renamed"), "`"));
}

absl::StatusOr<std::vector<RunState>> RunStore::list(std::vector<absl::Status>* left_out) const {
  std::vector<RunState> states;
  std::error_code error;
  std::filesystem::directory_iterator entries(runs(), error), end;
  if (error == std::errc::no_such_file_or_directory) return states;
  if (error == std::errc::not_a_directory)  // as in make_folder()
    return absl::FailedPreconditionError(str_cat("list ", runs(), ": ", error.message()));
  if (error) return errno_status(error.value(), str_cat("list ", runs()));
  const auto leave_out = [left_out](const absl::Status& why) {
    if (left_out != nullptr) left_out->push_back(why);
  };
  for (; entries != end; entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    auto state = read(name);
    if (absl::IsResourceExhausted(state.status())) return state.status();
    const bool nobodys = absl::IsNotFound(state.status()) || absl::IsInvalidArgument(state.status());
    if (!state.ok()) {
      if (!nobodys) leave_out(with_context(state.status(), str_cat("run \"", name, "\" can't be read")));
    } else if (!valid_name(name)) {
      leave_out(no_name(name));
    } else {
      states.push_back(*std::move(state));
    }
  }
  if (error) return errno_status(error.value(), str_cat("list ", runs()));
  std::sort(states.begin(), states.end(), [](const RunState& a, const RunState& b) {
    return a.created != b.created ? a.created > b.created : a.name < b.name;
  });
  return states;
}

absl::StatusOr<RunState> RunStore::get(const std::string& name) const {
  if (valid_name(name)) {
    auto state = read(name);
    if (state.ok() || state.status().code() != absl::StatusCode::kNotFound) return state;
  }
  std::error_code error;
  const std::string folder = runs() + "/" + name;
  const bool is_there = name.find('/') == std::string::npos && std::filesystem::is_directory(folder, error);
  if (is_there && !valid_name(name) && name.find_first_not_of('.') != std::string::npos) return no_name(name);
  if (is_there && valid_name(name)) {
    PL_ASSIGN_OR_RETURN(const bool owned, is_owned(folder));
    return absl::NotFoundError(
        owned
            ? str_cat("run \"", name, "\" is just being made: ", folder, " has no status.json yet; ask again")
            : str_cat(folder,
                      " is no run's folder: it has no status.json, and no job.yaml and lock to go on from"));
  }
  std::vector<absl::Status> left_out;
  PL_ASSIGN_OR_RETURN(const std::vector<RunState> all, list(&left_out));
  std::vector<std::string> names;
  for (const RunState& state : all) {
    if (names.size() < 5) names.push_back(state.name);
  }
  const std::string hint =
      !names.empty() ? str_cat("the newest runs are: ", absl::StrJoin(names, ", "))
      : !left_out.empty()
          ? std::string(left_out.front().message())
          : str_cat("there are no runs yet; start one with `paceline run job.yaml", where(), "`");
  return absl::NotFoundError(str_cat("no run named \"", name, "\" in ", folder_, "; ", hint));
}

absl::StatusOr<RunState> RunStore::choose(const std::string& name) const {
  if (!name.empty()) return get(name);
  std::vector<absl::Status> left_out;
  PL_ASSIGN_OR_RETURN(const std::vector<RunState> all, list(&left_out));
  for (const RunState& run : all) {
    if (!is_finished(run)) return run;
  }
  if (!all.empty()) return all.front();
  if (!left_out.empty()) return left_out.front();
  return absl::NotFoundError(
      str_cat("no runs in ", folder_, "; start one with `paceline run job.yaml", where(), "`"));
}

absl::StatusOr<std::vector<RunState>> RunStore::runs_of(const std::string& job) const {
  std::vector<absl::Status> left_out;
  PL_ASSIGN_OR_RETURN(std::vector<RunState> runs, list(&left_out));
  std::erase_if(runs, [&](const RunState& state) { return state.job != job; });
  if (!runs.empty()) return runs;
  const std::string none = str_cat("job \"", job, "\" has no run in ", folder_, " to resume");
  if (left_out.empty()) return absl::NotFoundError(none);
  return with_context(left_out.front(), str_cat(none, " that can be read"));
}

absl::Status RunStore::remove(const std::string& name) const {
  PL_ASSIGN_OR_RETURN(const RunState run, get(name));
  PL_ASSIGN_OR_RETURN(const UniqueFd held, lock(run));
  const std::string& folder = run.folder;
  std::vector<std::filesystem::path> parts;
  std::error_code error, first;
  if (std::filesystem::is_symlink(folder, error))
    return absl::FailedPreconditionError(str_cat(
        "the folder of run \"", name, "\" is a symbolic link, and what lies behind it is not deleted; `rm ",
        shell_word(folder), "` removes the link alone"));
  for (std::filesystem::directory_iterator entries(folder, error), end; !error && entries != end;
       entries.increment(error)) {
    const std::string part = entries->path().filename().string();
    if (part != "lock" && part != "job.yaml" && part != "status.json") parts.push_back(entries->path());
  }
  std::string left;
  for (const std::filesystem::path& part : parts) {
    std::filesystem::remove_all(part, error);
    if (error) left += str_cat("; left: ", first_left(part), " (", error.message(), ")");
    if (error && !first) first = error;
  }
  if (left.empty()) {
    std::filesystem::remove_all(folder, error);
    if (!error) return absl::OkStatus();
    return errno_status(error.value(), str_cat("remove ", folder, "; left: ", first_left(folder)));
  }
  const absl::Status why = errno_status(first.value(), "");
  return absl::Status(why.code(), str_cat("run \"", name, "\" is deleted in part, and can be again", left));
}

absl::StatusOr<std::string> state_folder(const std::string& option, const char* xdg_state_home,
                                         const char* home) {
  if (!option.empty()) return std::filesystem::absolute(option).lexically_normal().string();
  if (xdg_state_home != nullptr && xdg_state_home[0] == '/') return str_cat(xdg_state_home, "/paceline");
  if (home != nullptr && home[0] == '/') return str_cat(home, "/.local/state/paceline");
  return absl::FailedPreconditionError(
      "neither XDG_STATE_HOME nor HOME is set; say where runs are kept with --state-dir FOLDER");
}

}  // namespace paceline::cli

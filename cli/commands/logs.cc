// paceline logs NAME [MEMBER] [-f]: what members wrote, here or on a cluster.

#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/regular_file.h"
#include "base/status.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "cli/commands/cluster_flags.h"
#include "cli/number_checks.h"
#include "cli/session.h"
#include "cli/view/age.h"
#include "cli/view/log_printer.h"

namespace paceline::cli {

namespace {

constexpr int kRecheckMs = 500;  // a new log file or the end of the run is noticed within this

struct LogFile {
  UniqueFd fd;
  LogSource source;  // its id is the file's path
};

// "fashion-allreduce-worker-0-0.log" -> "worker-0": the job's name in front and the attempt behind are the
// same for all.
std::string member_of(const std::string& file, const std::string& job) {
  std::string name = file.substr(0, file.size() - 4);
  if (name.rfind(job + "-", 0) == 0) name.erase(0, job.size() + 1);
  const auto dash = name.rfind('-');
  const bool has_attempt = dash != std::string::npos && std::count(name.begin(), name.end(), '-') >= 2;
  return has_attempt ? name.substr(0, dash) : name;
}

absl::StatusOr<std::vector<std::string>> log_paths(const std::string& folder) {
  std::error_code error;
  std::vector<std::string> paths;
  for (std::filesystem::directory_iterator each(folder, error), end; each != end; each.increment(error)) {
    if (each->path().extension() == ".log") paths.push_back(each->path().string());
  }
  const absl::Status status = error ? errno_status(error.value(), folder) : absl::OkStatus();
  if (!status.ok() && !absl::IsNotFound(status)) return status;
  std::sort(paths.begin(), paths.end());
  return paths;
}

// What is gone by now is passed over.
absl::Status open_new_files(const RunState& run, const std::string& member, std::vector<LogFile>& files) {
  PL_ASSIGN_OR_RETURN(const auto paths, log_paths(run.folder + "/logs"));
  for (const std::string& path : paths) {
    if (std::any_of(files.begin(), files.end(), [&](const LogFile& f) { return f.source.id == path; }))
      continue;
    const std::string file_name = std::filesystem::path(path).filename().string(),
                      name = member_of(file_name, run.job);
    if (!member.empty() && name != member && file_name != member + ".log") continue;
    auto opened = open_regular_file(path);
    if (opened.ok()) {
      files.push_back({std::move(opened->fd), {.id = path, .member = name}});
    } else if (absl::IsInvalidArgument(opened.status())) {
      return absl::FailedPreconditionError(opened.status().message());  // no fault of the command line
    } else if (!absl::IsNotFound(opened.status())) {
      return opened.status();
    }
  }
  return absl::OkStatus();
}

// Prints what has come since the last call, of all that can be read; the first error of the others.
absl::Status copy_new(std::vector<LogFile>& files, LogPrinter& printer, bool flush_partial) {
  absl::Status status;
  char chunk[65536];
  for (LogFile& file : files) {
    ssize_t n = 0;
    while (std::cout && (n = ::read(file.fd.get(), chunk, sizeof(chunk))) > 0)
      printer.feed(file.source, std::string_view(chunk, static_cast<std::size_t>(n)));
    if (n < 0) status.Update(errno_status(errno, file.source.id));
    if (flush_partial) printer.end(file.source);
    std::cout.flush();
  }
  return status;
}

// Moves the read position to the last `lines` lines.
void skip_to_tail(LogFile& file, int lines) {
  const off_t size = ::lseek(file.fd.get(), 0, SEEK_END);
  if (lines == 0) return;
  off_t position = size;
  int found = 0;
  char chunk[4096];
  while (position > 0 && found <= lines) {
    const off_t begin = std::max<off_t>(0, position - static_cast<off_t>(sizeof(chunk)));
    const ssize_t n = ::pread(file.fd.get(), chunk, static_cast<std::size_t>(position - begin), begin);
    if (n <= 0) break;
    for (ssize_t i = n - 1; i >= 0; --i) {
      if (chunk[i] == '\n' && begin + i + 1 != size && ++found == lines) {
        ::lseek(file.fd.get(), begin + i + 1, SEEK_SET);
        return;
      }
    }
    position = begin;
  }
  ::lseek(file.fd.get(), 0, SEEK_SET);
}

absl::Status follow(const RunStore& store, const RunState& run, const std::string& member,
                    std::vector<LogFile>& files, LogPrinter& printer) {
  UniqueFd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (watch.valid()) ::inotify_add_watch(watch.get(), (run.folder + "/logs").c_str(), IN_MODIFY | IN_CREATE);
  while (std::cout) {  // until the run ends, the reader goes away, or ctrl-C
    const auto state = store.get(run.name);
    if (!state.ok() && !absl::IsNotFound(state.status())) return state.status();
    const bool last = !state.ok() || is_finished(*state);
    PL_RETURN_IF_ERROR(open_new_files(run, member, files));
    PL_RETURN_IF_ERROR(copy_new(files, printer, last));
    if (last) break;
    pollfd wait{watch.get(), POLLIN, 0};
    ::poll(&wait, 1, kRecheckMs);
    char events[4096];
    while (::read(watch.get(), events, sizeof(events)) > 0) {
    }
  }
  return absl::OkStatus();
}

void logs(Session& session, const std::string& name, const std::string& member, bool following, int tail) {
  const auto store = session.store();
  if (!store.ok()) return session.fail(store.status());
  const auto run = store->choose(name);
  if (absl::IsNotFound(run.status()))
    return session.fail(kExitNotFound, str_cat(run.status().message(), session.cluster_hint()));
  if (!run.ok()) return session.fail(run.status());
  std::vector<LogFile> files;
  if (const auto status = open_new_files(*run, member, files); !status.ok()) return session.fail(status);
  if (files.empty() && !(following && !is_finished(*run))) {
    std::vector<LogFile> all;
    if (const auto status = open_new_files(*run, "", all); !status.ok()) return session.fail(status);
    std::string names;
    for (const LogFile& file : all) names += (names.empty() ? "" : ", ") + file.source.member;
    return session.fail(kExitNotFound, member.empty() ? str_cat("run \"", run->name, "\" has no logs")
                                                      : str_cat("run \"", run->name, "\" has no member \"",
                                                                member, "\"; it has: ", names));
  }
  if (tail >= 0) {
    for (LogFile& file : files) skip_to_tail(file, tail);
  }
  LogPrinter printer(std::cout, ::isatty(STDOUT_FILENO) == 1, member.empty());
  absl::Status status = copy_new(files, printer, !following);
  if (status.ok() && following) status = follow(*store, *run, member, files, printer);
  if (!status.ok()) session.fail(status);
}

}  // namespace

void add_logs(CLI::App& app, Session& session) {
  struct Options {
    LogsOptions cluster;
    std::string name, member, since;
    bool follow = false;
    int tail = -1;
  };
  auto* command = app.add_subcommand(
      "logs", session.kubectl ? "What a job's members wrote" : "What a run's or a job's members wrote");
  auto options = std::make_shared<Options>();
  command->add_option("NAME", options->name, kNameHelp)->type_name("");
  command
      ->add_option("MEMBER", options->member,
                   "One member, e.g. worker-1 or worker/1; on a cluster also a role (default: all, each line "
                   "with its member)")
      ->type_name("");
  command->add_flag("-f,--follow", options->follow, "Go on as lines come, until it ends");
  command->add_option("--tail", options->tail, "Begin with the last N lines of each member")
      ->type_name("N")
      ->check(whole_number_between(0, 1'000'000));
  auto flags = add_cluster_flags(*command, session, Where::kBoth);
  command->add_option("--since", options->since, "Only the lines of the last 30s, 5m, 2h")
      ->type_name("TIME")
      ->group(kClusterGroup);
  command->add_flag("-p,--previous", options->cluster.previous, "The attempt before the present one")
      ->group(kClusterGroup);
  command
      ->add_option("-c,--container", options->cluster.container,
                   "Another container of the pods (default: the trainer, or an init container that failed)")
      ->type_name("NAME")
      ->group(kClusterGroup);
  command->footer(session.examples({{false, "logs --tail 20"},
                                    {false, "logs digits-allreduce"},
                                    {false, "logs digits-allreduce worker-1 --tail 20 -f"},
                                    {true, "logs digits worker/1 -f -n team-a"},
                                    {true, "logs digits --since 10m -n team-a"}}));
  command->callback([&session, options, flags, command] {
    if (!is_on_cluster(session, *flags)) {
      for (const char* name : {"--since", "--previous", "--container"}) {
        if (command->get_option(name)->count() > 0)
          return session.fail(
              kExitUsage,
              str_cat(name, " is for jobs on a cluster; say which by --cluster, --context or -n"));
      }
      std::string member = options->member;
      std::replace(member.begin(), member.end(), '/', '-');
      return logs(session, options->name, member, options->follow, options->tail);
    }
    LogsOptions wanted = options->cluster;
    if (!take_job_name(session, options->name, wanted.name)) return;
    wanted.member = options->member;
    wanted.follow = options->follow;
    if (options->tail >= 0) wanted.tail = options->tail;
    if (!options->since.empty()) {
      const auto since = parse_age(options->since);
      if (!since.ok()) return session.fail(since.status());
      wanted.since = *since;
    }
    wanted.to_terminal = ::isatty(STDOUT_FILENO) == 1;
    on_cluster(session, *flags, wanted.follow ? Mode::kFollow : Mode::kOnce,
               [&](Call& call) { return job_logs(call, wanted); });
  });
}

}  // namespace paceline::cli

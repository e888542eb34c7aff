// paceline logs RUN [MEMBER] [-f]: what members wrote.

#include <fcntl.h>
#include <poll.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "cli/session.h"

namespace paceline::cli {

namespace {

constexpr std::size_t kMaxPartialBytes = 1 << 16;
constexpr int kRecheckMs = 500;  // a new log file or the end of the run is noticed within this

struct LogFile {
  std::string path, member;
  UniqueFd fd;
  std::string partial;    // of a line whose end has not come yet; at most kMaxPartialBytes
  bool in_line = false;   // the beginning of that line has been printed
  std::size_t shown = 0;  // bytes of it, on a terminal
};

// A member's own lines name it after their time and level: "2026-01-31T12:00:00.000Z info  worker-0: ...".
// Where that name stands: begin and length; {0, 0} in any other line, such as one that a user's program
// printed.
std::pair<std::size_t, std::size_t> name_in(std::string_view line, const std::string& member) {
  const std::size_t time_end = line.find(' ');
  if (time_end == std::string_view::npos || time_end < 20 || line[10] != 'T' || line[time_end - 1] != 'Z')
    return {};
  const std::size_t level_end = line.find(' ', time_end + 1);
  const std::size_t name = line.find_first_not_of(' ', std::min(level_end, line.size()));
  if (name == std::string_view::npos || line.substr(name).rfind(member + ": ", 0) != 0) return {};
  return {name, member.size() + 2};
}

// Prints what members wrote. A terminal gets it harmless, and lines cut at kMaxShownBytes; a pipe gets every
// byte as it is. `prefix`: each line begins with its member, and then doesn't name it again.
class Printer {
 public:
  Printer(bool terminal, bool prefix) : terminal_(terminal), prefix_(prefix) {}

  // A piece of a line, with its newline where it has one.
  void print(LogFile& file, std::string_view piece) {
    if (!open_line_.empty() && open_line_ != file.path) std::cout << "\n";  // another member's endless line
    const bool continued = file.in_line && open_line_ == file.path;
    std::string nameless;
    if (prefix_ && !continued) {
      std::cout << file.member << " | ";
      if (const auto [at, length] = name_in(piece, file.member); length > 0 && !file.in_line)
        piece = nameless.append(piece).erase(at, length);
    }
    const bool ends = !piece.empty() && piece.back() == '\n';
    if (!file.in_line) file.shown = 0;
    if (!terminal_) {
      std::cout.write(piece.data(), static_cast<std::streamsize>(piece.size()));
    } else {
      const std::string_view text = piece.substr(0, piece.size() - (ends ? 1 : 0));
      const std::size_t room = kMaxShownBytes - std::min(file.shown, kMaxShownBytes);
      if (file.shown <= kMaxShownBytes) {
        std::cout << visible(text.substr(0, room)) << (text.size() > room ? "..." : "");
        file.shown += std::min(text.size(), room + 1);
      }
      if (ends) std::cout << "\n";
    }
    file.in_line = !ends;
    open_line_ = ends ? "" : file.path;
  }

  // The log has ended within a line.
  void end(LogFile& file) {
    if (!file.partial.empty()) print(file, file.partial);
    file.partial.clear();
    if (file.in_line && (terminal_ || prefix_)) std::cout << "\n";
    if (open_line_ == file.path) open_line_.clear();
    file.in_line = false;
  }

 private:
  static constexpr std::size_t kMaxShownBytes = 4096;
  const bool terminal_, prefix_;
  std::string open_line_;  // the path of the log whose line is not at its end
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

void open_new_files(const RunState& run, const std::string& member, std::vector<LogFile>& files) {
  std::error_code error;
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(run.folder + "/logs", error)) {
    if (entry.path().extension() == ".log") paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) {
    if (std::any_of(files.begin(), files.end(), [&](const LogFile& f) { return f.path == path; })) continue;
    const std::string file_name = std::filesystem::path(path).filename().string(),
                      name = member_of(file_name, run.job);
    if (!member.empty() && name != member && file_name != member + ".log") continue;
    UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (fd.valid()) files.push_back({.path = path, .member = name, .fd = std::move(fd)});
  }
}

// Prints what has come since the last call: whole lines, and of endless ones what is more than
// kMaxPartialBytes.
void copy_new(LogFile& file, Printer& printer, bool flush_partial) {
  char chunk[65536];
  ssize_t n;
  while (std::cout && (n = ::read(file.fd.get(), chunk, sizeof(chunk))) > 0) {
    file.partial.append(chunk, static_cast<std::size_t>(n));
    std::size_t begin = 0, end;
    while ((end = file.partial.find('\n', begin)) != std::string::npos) {
      printer.print(file, std::string_view(file.partial).substr(begin, end + 1 - begin));
      begin = end + 1;
    }
    file.partial.erase(0, begin);
    if (file.partial.size() <= kMaxPartialBytes) continue;
    printer.print(file, file.partial);
    file.partial.clear();
  }
  if (flush_partial) printer.end(file);
  std::cout.flush();
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

void follow(const RunStore& store, const RunState& run, const std::string& member,
            std::vector<LogFile>& files, Printer& printer) {
  UniqueFd watch(::inotify_init1(IN_CLOEXEC | IN_NONBLOCK));
  if (watch.valid()) ::inotify_add_watch(watch.get(), (run.folder + "/logs").c_str(), IN_MODIFY | IN_CREATE);
  while (std::cout) {  // until the run ends, the reader goes away, or ctrl-C
    const auto state = store.get(run.name);
    const bool last = !state.ok() || is_finished(*state);
    open_new_files(run, member, files);
    for (LogFile& file : files) copy_new(file, printer, last);
    if (last) return;
    pollfd wait{watch.get(), POLLIN, 0};
    ::poll(&wait, 1, kRecheckMs);
    char events[4096];
    while (::read(watch.get(), events, sizeof(events)) > 0) {
    }
  }
}

void logs(Session& session, const std::string& name, const std::string& member, bool following, int tail) {
  const auto store = session.store();
  if (!store.ok()) return session.fail(store.status());
  const auto run = store->choose(name);
  if (!run.ok()) return session.fail(run.status());
  std::vector<LogFile> files;
  open_new_files(*run, member, files);
  if (files.empty() && !(following && !is_finished(*run))) {
    std::vector<LogFile> all;
    open_new_files(*run, "", all);
    std::string names;
    for (const LogFile& file : all) names += (names.empty() ? "" : ", ") + file.member;
    return session.fail(kExitNotFound, member.empty() ? str_cat("run \"", run->name, "\" has no logs")
                                                      : str_cat("run \"", run->name, "\" has no member \"",
                                                                member, "\"; it has: ", names));
  }
  if (tail >= 0) {
    for (LogFile& file : files) skip_to_tail(file, tail);
  }
  Printer printer(::isatty(STDOUT_FILENO) == 1, member.empty());
  for (LogFile& file : files) copy_new(file, printer, !following);
  if (following) follow(*store, *run, member, files, printer);
}

}  // namespace

void add_logs(CLI::App& app, Session& session) {
  struct Options {
    std::string run, member;
    bool follow = false;
    int tail = -1;
  };
  auto* command = app.add_subcommand("logs", "What a run's members wrote");
  auto options = std::make_shared<Options>();
  command->add_option("RUN", options->run, kRunHelp)->type_name("");
  command
      ->add_option("MEMBER", options->member,
                   "One member, e.g. worker-1 (default: all, each line with its member)")
      ->type_name("");
  command->add_flag("-f,--follow", options->follow, "Go on as lines come, until the run ends");
  command->add_option("--tail", options->tail, "Begin with the last N lines of each member")
      ->type_name("N")
      ->check(CLI::Range(0, 1000000, "0 to 1,000,000"));
  command->footer(
      "Examples:\n  paceline logs --tail 20\n  paceline logs digits-allreduce\n  paceline logs "
      "digits-allreduce worker-1 --tail 20 -f");
  command->callback(
      [&session, options] { logs(session, options->run, options->member, options->follow, options->tail); });
}

}  // namespace paceline::cli

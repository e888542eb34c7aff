#include "controller/cluster/kube/exec_plugin.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/process_end.h"
#include "base/status.h"
#include "base/unique_fd.h"

namespace paceline::kube {

namespace {

constexpr std::size_t kMaxStderr = 2048;  // the last bytes of it, for the error

struct Pipe {
  UniqueFd ours, theirs;
};

absl::StatusOr<Pipe> make_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return errno_status(errno, "pipe for a credential plug-in");
  Pipe pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
  ::fcntl(pipe.ours.get(), F_SETFL, O_NONBLOCK);
  // Above the descriptors that the plug-in gets, so that no dup2 overwrites one.
  pipe.theirs = UniqueFd(::fcntl(pipe.theirs.get(), F_DUPFD_CLOEXEC, 10));
  if (!pipe.theirs.valid()) return errno_status(errno, "pipe for a credential plug-in");
  return pipe;
}

// The plug-in's process. Whatever way this ends, the group is killed and the process reaped.
class Process {
 public:
  Process(pid_t pid, bool own_group) : pid_(pid), own_group_(own_group) {}
  ~Process() { end(); }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  // Its wait status.
  int end() {
    if (pid_ > 0) {
      // Descendants first: while the process is not reaped, its number belongs to nobody else.
      siginfo_t info{};
      const bool ended = ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
                         info.si_pid == pid_;
      if (own_group_) ::kill(-pid_, SIGKILL);
      if (!ended) ::kill(pid_, SIGKILL);
      while (::waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
      }
      pid_ = 0;
    }
    return status_;
  }

 private:
  pid_t pid_;
  bool own_group_;
  int status_ = 0;
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

std::vector<std::string> environment(const ExecPlugin& plugin, const std::string& info) {
  std::map<std::string, std::string> values;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text = *entry;
    const std::size_t equals = text.find('=');
    if (equals != std::string::npos) values[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const auto& [name, value] : plugin.env) values[name] = value;
  values["KUBERNETES_EXEC_INFO"] = info;
  std::vector<std::string> result;
  for (const auto& [name, value] : values) result.push_back(str_cat(name, "=", value));
  return result;
}

int spawn(const ExecPlugin& plugin, const std::string& info, bool interactive, int out, int err, pid_t* pid) {
  std::vector<std::string> arguments = {plugin.command};
  arguments.insert(arguments.end(), plugin.args.begin(), plugin.args.end());
  std::vector<std::string> variables = environment(plugin, info);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawnattr_init(&attributes);
  sigset_t none, all;
  ::sigemptyset(&none);
  ::sigfillset(&all);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  ::posix_spawnattr_setsigdefault(&attributes, &all);
  int flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
  if (!interactive) {
    // A terminal is only for the group in its foreground, so an interactive plug-in stays in ours.
    flags |= POSIX_SPAWN_SETPGROUP;
    ::posix_spawnattr_setpgroup(&attributes, 0);
    ::posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, err, 2);
  }
  ::posix_spawnattr_setflags(&attributes, static_cast<short>(flags));
  int error = ::posix_spawn_file_actions_adddup2(&actions, out, 1);
  if (error == 0) error = ::posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  if (error == 0) {
    error = ::posix_spawnp(pid, plugin.command.c_str(), &actions, &attributes, pointers(arguments).data(),
                           pointers(variables).data());
  }
  ::posix_spawn_file_actions_destroy(&actions);
  ::posix_spawnattr_destroy(&attributes);
  return error;
}

// Reads what is there. False: the other end is closed.
bool drain(int fd, std::string& into, std::size_t limit) {
  char buffer[4096];
  while (into.size() <= limit) {
    const ssize_t n = ::read(fd, buffer, sizeof(buffer));
    if (n > 0) {
      into.append(buffer, static_cast<std::size_t>(n));
    } else if (n == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
  return true;
}

// As drain, but only the last bytes stay.
bool drain_tail(int fd, std::string& into) {
  std::string fresh;
  const bool open = drain(fd, fresh, 64 * kMaxStderr);
  into += fresh;
  if (into.size() > kMaxStderr) into.erase(0, into.size() - kMaxStderr);
  return open;
}

std::string printable(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.pop_back();
  for (char& c : text) {
    if (c == '\n' || c == '\t') c = ' ';
    if (static_cast<unsigned char>(c) < ' ' || c == 127) c = '?';
  }
  return text;
}

std::string describe_end(int status) {
  return WIFSIGNALED(status) ? str_cat("was ", exit_text({}, WTERMSIG(status)))
                             : exit_text(WEXITSTATUS(status), {});
}

struct Output {
  std::string out, err;
};

enum class End { kExited, kTimeout, kStopped, kTooMuch };

// Waits until the process has ended (not until its pipes are closed: a descendant may hold them).
End wait_for_end(int pidfd, const UniqueFd& stopped, const Pipe& out, const Pipe& err, Duration timeout,
                 Output& output) {
  const SystemClock clock;
  const Deadline deadline = Deadline::after(clock.now(), timeout);
  pollfd fds[] = {{pidfd, POLLIN, 0},
                  {stopped.get(), POLLIN, 0},
                  {out.ours.get(), POLLIN, 0},
                  {err.ours.get(), POLLIN, 0}};
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline.remaining(clock.now()));
    if (left.count() == 0) return End::kTimeout;
    const int ready = ::poll(fds, 4, static_cast<int>(std::min<std::int64_t>(left.count(), 3'600'000)));
    if (ready < 0 && errno != EINTR) return End::kTimeout;
    if (fds[1].revents != 0) return End::kStopped;
    if (fds[2].fd >= 0 && !drain(fds[2].fd, output.out, kMaxExecOutput)) fds[2].fd = -1;
    if (fds[3].fd >= 0 && !drain_tail(fds[3].fd, output.err)) fds[3].fd = -1;
    if (output.out.size() > kMaxExecOutput) return End::kTooMuch;
    if (fds[0].revents == 0) continue;
    // It wrote before it ended; the reads above may have come before that.
    drain(out.ours.get(), output.out, kMaxExecOutput);
    drain_tail(err.ours.get(), output.err);
    return output.out.size() > kMaxExecOutput ? End::kTooMuch : End::kExited;
  }
}

}  // namespace

bool exec_is_interactive(const ExecPlugin& plugin) {
  return plugin.interactive_mode != InteractiveMode::kNever && ::isatty(0) == 1;
}

absl::StatusOr<ExecCredential> run_exec_plugin(const ExecPlugin& plugin, const Endpoint& endpoint,
                                               Duration timeout, std::stop_token stop) {
  const std::string who = str_cat("credential plug-in \"", plugin.command, "\"");
  const auto failed = [&](std::string_view problem, const std::string& err) {
    std::string message = str_cat(who, " ", problem);
    if (!err.empty()) message += str_cat("; it said: ", printable(err));
    return absl::UnauthenticatedError(message);
  };
  const bool interactive = exec_is_interactive(plugin);
  if (plugin.interactive_mode == InteractiveMode::kAlways && !interactive)
    return failed("needs a terminal (interactiveMode: Always), and there is none", "");

  PL_ASSIGN_OR_RETURN(Pipe out, make_pipe());
  PL_ASSIGN_OR_RETURN(Pipe err, make_pipe());
  const UniqueFd stopped(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!stopped.valid()) return errno_status(errno, "eventfd for a credential plug-in");
  const std::stop_callback wake(stop, [&] { ::eventfd_write(stopped.get(), 1); });

  pid_t pid = 0;
  const int error = spawn(plugin, exec_info(plugin, endpoint, interactive), interactive, out.theirs.get(),
                          err.theirs.get(), &pid);
  if (error != 0) {
    std::string problem(errno_status(error, "can't be started").message());
    if (!plugin.install_hint.empty()) problem += str_cat("; ", plugin.install_hint);
    return failed(problem, "");
  }
  Process process(pid, !interactive);
  out.theirs.reset();
  err.theirs.reset();
  const UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) return errno_status(errno, str_cat("watching ", who));

  Output output;
  switch (wait_for_end(pidfd.get(), stopped, out, err, timeout, output)) {
    case End::kTimeout:
      return failed(str_cat("gave no credential within ", format_duration(timeout), " and was killed"),
                    output.err);
    case End::kStopped:
      return absl::CancelledError(str_cat(who, ": not waited for"));
    case End::kTooMuch:
      return failed(str_cat("printed more than ", kMaxExecOutput, " bytes"), output.err);
    case End::kExited:
      break;
  }
  const int status = process.end();
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return failed(describe_end(status), output.err);
  auto credential = parse_exec_credential(output.out, plugin.api_version);
  if (!credential.ok())
    return failed(str_cat("gave no credential: ", credential.status().message()), output.err);
  return credential;
}

}  // namespace paceline::kube

#include "controller/cluster/local/supervisor.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "base/file.h"
#include "base/regular_file.h"
#include "base/status.h"
#include "controller/cluster/local/pod_protocol.h"

namespace paceline::cluster {

namespace {

// Descriptors of ours stay above those that the supervisor gets (0 to 3), so that no dup2 below overwrites
// one.
constexpr int kFirstOwnFd = 10;

absl::StatusOr<UniqueFd> raised(UniqueFd fd, const std::string& what) {
  if (!fd.valid()) return errno_status(errno, what);
  UniqueFd high(::fcntl(fd.get(), F_DUPFD_CLOEXEC, kFirstOwnFd));
  // EINVAL: the limit of descriptors is below kFirstOwnFd.
  if (!high.valid()) return errno_status(errno == EINVAL ? EMFILE : errno, what);
  return high;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> result;
  result.reserve(texts.size() + 1);
  for (std::string& text : texts) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

// posix_spawn's two argument objects, with their ends.
class SpawnSetup {
 public:
  SpawnSetup() {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawnattr_init(&attributes_);
  }
  ~SpawnSetup() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSetup(const SpawnSetup&) = delete;
  SpawnSetup& operator=(const SpawnSetup&) = delete;

  int prepare(int null, int log, int socket, const std::string& folder) {
    sigset_t none, all;
    ::sigemptyset(&none);
    ::sigfillset(&all);
    const int results[] = {
        ::posix_spawn_file_actions_adddup2(&actions_, null, 0),
        ::posix_spawn_file_actions_adddup2(&actions_, log, 1),
        ::posix_spawn_file_actions_adddup2(&actions_, log, 2),
        ::posix_spawn_file_actions_adddup2(&actions_, socket, kSupervisorSocket),
        ::posix_spawn_file_actions_addchdir_np(&actions_, folder.c_str()),
        ::posix_spawnattr_setsigmask(&attributes_, &none),
        ::posix_spawnattr_setsigdefault(&attributes_, &all),
        ::posix_spawnattr_setflags(&attributes_,
                                   POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF),
    };
    for (const int result : results) {
      if (result != 0) return result;
    }
    return 0;
  }

  int spawn(pid_t* pid, const std::string& program, char* const* argv, char* const* envp) {
    return ::posix_spawn(pid, program.c_str(), &actions_, &attributes_, argv, envp);
  }

 private:
  posix_spawn_file_actions_t actions_;
  posix_spawnattr_t attributes_;
};

}  // namespace

absl::StatusOr<Supervisor> start_supervisor(const SupervisorPlan& plan) {
  PL_ASSIGN_OR_RETURN(const UniqueFd null,
                      raised(UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC)), "/dev/null"));
  PL_ASSIGN_OR_RETURN(RegularFile log_file, open_regular_file(plan.log_path, O_WRONLY | O_CREAT | O_APPEND));
  PL_ASSIGN_OR_RETURN(const UniqueFd log, raised(std::move(log_file.fd), plan.log_path));
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return errno_status(errno, "socket for a pod");
  Supervisor supervisor;
  supervisor.socket = UniqueFd(ends[0]);
  PL_ASSIGN_OR_RETURN(const UniqueFd theirs, raised(UniqueFd(ends[1]), "socket for a pod"));

  std::vector<std::string> arguments = {plan.program};
  arguments.insert(arguments.end(), plan.command.begin(), plan.command.end());
  std::vector<std::string> environment;
  for (const auto& [name, value] : plan.env) environment.push_back(str_cat(name, "=", value));

  SpawnSetup setup;
  int error = setup.prepare(null.get(), log.get(), theirs.get(), plan.folder);
  if (error == 0) {
    error =
        setup.spawn(&supervisor.pid, plan.program, pointers(arguments).data(), pointers(environment).data());
  }
  if (error != 0) return errno_status(error, str_cat("starting ", plan.program));
  supervisor.pidfd = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, supervisor.pid, 0)));
  if (!supervisor.pidfd.valid()) {
    const int pidfd_error = errno;
    ::kill(supervisor.pid, SIGKILL);
    ::waitpid(supervisor.pid, nullptr, 0);
    return errno_status(pidfd_error, "watching a pod's supervisor");
  }
  return supervisor;
}

}  // namespace paceline::cluster

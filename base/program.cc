#include "base/program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <new>
#include <system_error>

#include "base/sanitize.h"
#include "base/text.h"

namespace paceline {

namespace {

const char* program_name = "paceline";
int exit_code = 1;

[[noreturn]] void end_at_once() {
  const std::string line =
      str_cat(program_name, ": ", sanitize(exception_text(std::current_exception())), "\n");
  (void)!::write(STDERR_FILENO, line.data(), line.size());
  ::_exit(exit_code);
}

volatile sig_atomic_t late_exit_code = 1;
char late_line[160];
std::size_t late_line_bytes = 0;

void end_late(int signal) {
  if (signal == SIGALRM) (void)!::write(STDERR_FILENO, late_line, late_line_bytes);
  ::_exit(late_exit_code);
}

void open_closed_standard_files() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0 && errno == EBADF) {
      // It takes the lowest that is free, which is this one.
      (void)::open("/dev/null", fd == STDOUT_FILENO ? O_RDONLY : O_RDWR);
    }
  }
}

}  // namespace

std::string exception_text(const std::exception_ptr& exception) {
  if (!exception) return "it ended without a reason; please report this";
  try {
    std::rethrow_exception(exception);
  } catch (const std::bad_alloc&) {
    return "the system gives no more memory; raise its limit (ulimit -v, or the container's) or use fewer "
           "members";
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      return "the system starts no more threads; raise the limits of processes (ulimit -u, or the "
             "container's pids) "
             "and of address space (ulimit -v), or use fewer members";
    }
    return str_cat("the system refused: ", error.what());
  } catch (const std::exception& error) {
    return str_cat("unexpected: ", error.what(), "; please report this");
  } catch (...) {
    return "an exception without words; please report this";
  }
}

int run_main(const char* program, int failure_code, const std::function<int()>& body) {
  program_name = program;
  exit_code = failure_code;
  std::set_terminate(end_at_once);
  (void)::signal(SIGXFSZ, SIG_IGN);
  open_closed_standard_files();
  try {
    return body();
  } catch (...) {
    std::fprintf(stderr, "%s: %s\n", program, sanitize(exception_text(std::current_exception())).c_str());
    return failure_code;
  }
}

absl::Status without_exceptions(const std::function<absl::Status()>& body) {
  try {
    return body();
  } catch (...) {
    return absl::ResourceExhaustedError(exception_text(std::current_exception()));
  }
}

absl::Status reserve_descriptors(std::size_t count) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= count) return absl::OkStatus();
  const rlim_t before = limit.rlim_cur;
  if (limit.rlim_max >= count) {
    limit.rlim_cur = count;
    if (::setrlimit(RLIMIT_NOFILE, &limit) == 0) return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(str_cat("this needs ", count,
                                              " file descriptors, and the limit of this process is ", before,
                                              "; raise it (ulimit -n ", count, ") or use fewer members"));
}

void end_within(std::chrono::seconds limit, int failure_code, std::initializer_list<int> signals) {
  ::alarm(0);
  late_exit_code = failure_code;
  const int length = std::snprintf(late_line, sizeof(late_line),
                                   "%s: a library held it up for %lld s (could that not start its threads? "
                                   "ulimit -u, ulimit -v); it ends at once\n",
                                   program_name, static_cast<long long>(limit.count()));
  late_line_bytes = std::min<std::size_t>(static_cast<std::size_t>(length), sizeof(late_line) - 1);
  struct sigaction action {};
  action.sa_handler = end_late;
  sigset_t open;
  sigemptyset(&open);
  sigaddset(&open, SIGALRM);
  ::sigaction(SIGALRM, &action, nullptr);
  for (const int signal : signals) {
    ::sigaction(signal, &action, nullptr);
    sigaddset(&open, signal);
  }
  ::alarm(static_cast<unsigned>(limit.count()));
  ::pthread_sigmask(SIG_UNBLOCK, &open, nullptr);
}

void end_when_ready() {
  ::alarm(0);
}

}  // namespace paceline

#include "cli/dashboard/browser.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "base/unique_fd.h"

extern char** environ;

namespace paceline::cli {

bool has_desktop() {
  for (const char* const name : {"DISPLAY", "WAYLAND_DISPLAY"}) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != '\0') return true;
  }
  return false;
}

std::string leading_page(const std::string& address) {
  return str_cat(
      "<!doctype html>\n<meta charset=\"utf-8\">\n<meta name=\"referrer\" content=\"no-referrer\">\n",
      "<meta http-equiv=\"refresh\" content=\"0; url=", address, "\">\n<title>Paceline</title>\n",
      "<a href=\"", address, "\">The dashboard</a>\n");
}

absl::StatusOr<std::unique_ptr<LeadingFile>> LeadingFile::write(const std::string& folder,
                                                                const std::string& address) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  const std::string path = str_cat(folder, "/dashboard-", ::getpid(), ".html");
  (void)::unlink(path.c_str());  // of an earlier process of this number
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR));
  if (!fd.valid()) return errno_status(errno, str_cat("create ", path));
  std::unique_ptr<LeadingFile> file(new LeadingFile(path));
  const std::string page = leading_page(address);
  if (::write(fd.get(), page.data(), page.size()) != static_cast<ssize_t>(page.size()))
    return errno_status(errno, str_cat("write ", path));
  return file;
}

LeadingFile::~LeadingFile() {
  ::unlink(path_.c_str());
}

absl::Status LeadingFile::open_in_browser() const {
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attributes;
  ::posix_spawn_file_actions_init(&files);
  ::posix_spawnattr_init(&attributes);
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    ::posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_RDWR, 0);
  sigset_t none;  // ours are blocked
  sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&attributes, &none);
  // A session of its own: ctrl-C is not for the browser.
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSID);
  std::string program = "xdg-open", path = path_;
  char* const arguments[] = {program.data(), path.data(), nullptr};
  pid_t pid = 0;
  const int failed = ::posix_spawnp(&pid, program.c_str(), &files, &attributes, arguments, environ);
  ::posix_spawnattr_destroy(&attributes);
  ::posix_spawn_file_actions_destroy(&files);
  return failed == 0 ? absl::OkStatus() : errno_status(failed, "start xdg-open");
}

}  // namespace paceline::cli

#include "cli/run/checkpoint_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/text.h"

namespace paceline::cli {

absl::StatusOr<UniqueFd> lock_checkpoints(const std::string& folder) {
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::flock(fd.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return fd;
  return absl::FailedPreconditionError(
      str_cat("another `paceline run` saves its checkpoints in ", folder,
              " right now; wait until it has ended, or give this job another checkpoint.location"));
}

}  // namespace paceline::cli

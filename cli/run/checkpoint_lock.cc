#include "cli/run/checkpoint_lock.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "base/text.h"
#include "cli/run/checkpoint_place.h"
#include "runtime/checkpoint/checkpoint_store.h"

namespace paceline::cli {

namespace {

absl::Status not_writable(const std::string& folder, const std::string& why) {
  return absl::FailedPreconditionError(
      str_cat("no checkpoints can be written in ", folder, ": ", why,
              "; give this user the right and the room to write there, or name another folder in "
              "spec.checkpoint.location"));
}

}  // namespace

absl::StatusOr<UniqueFd> lock_checkpoints(const std::string& folder, const std::vector<RunState>& runs) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) return not_writable(folder, error.message());
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd.valid() && ::flock(fd.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    const RunState* const holder = run_that_saves_in(runs, folder);
    return absl::FailedPreconditionError(
        str_cat(holder == nullptr
                    ? std::string("a `paceline run` of another state folder")
                    : str_cat("run \"", holder->name, "\" (`paceline run`, pid ", holder->owner_pid, ")"),
                " saves its checkpoints in ", folder,
                " right now; wait until it has ended, or give this job another checkpoint.location"));
  }
  const absl::Status writable = checkpoint::CheckpointStore(folder, 1).check_writable();
  if (!writable.ok()) return not_writable(folder, std::string(writable.message()));
  return fd;
}

}  // namespace paceline::cli

#include "cli/session.h"

#include <unistd.h>

#include <cstdlib>

#include "base/status.h"
#include "base/text.h"
#include "cli/run/patient_output.h"

namespace paceline::cli {

namespace {
int exit_code_of(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kAlreadyExists:
      return kExitUsage;
    case absl::StatusCode::kNotFound:
      return kExitNotFound;
    default:
      return kExitSystem;
  }
}
}  // namespace

void Session::fail(const absl::Status& status) {
  fail(exit_code_of(status.code()), std::string_view(status.message().data(), status.message().size()));
}

void Session::fail(int code, std::string_view message) {
  constexpr int kReaderLimitMs = 1000;
  write_within(STDERR_FILENO, str_cat(styled(error_terminal, Style::kRed, "paceline:"), " ", message, "\n"),
               kReaderLimitMs);
  exit_code = code;
}

absl::StatusOr<RunStore> Session::store() const {
  PL_ASSIGN_OR_RETURN(std::string folder,
                      state_folder(state_dir_option, std::getenv("XDG_STATE_HOME"), std::getenv("HOME")));
  return RunStore(std::move(folder));
}

}  // namespace paceline::cli

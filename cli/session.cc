#include "cli/session.h"

#include <unistd.h>

#include <cstdlib>

#include "base/sanitize.h"
#include "base/status.h"
#include "base/text.h"
#include "cli/run/non_blocking_output.h"

namespace paceline::cli {

namespace {
int exit_code_of(absl::StatusCode code) {
  using Code = absl::StatusCode;
  if (code == Code::kInvalidArgument || code == Code::kAlreadyExists) return kExitUsage;
  if (code == Code::kNotFound) return kExitNotFound;
  return code == Code::kCancelled ? kExitInterrupted : kExitSystem;
}
}  // namespace

void Session::fail(const absl::Status& status) {
  fail(exit_code_of(status.code()), std::string_view(status.message().data(), status.message().size()));
}

void Session::fail(int code, std::string_view message) {
  constexpr int kReaderLimitMs = 1000;
  write_within(
      STDERR_FILENO,
      str_cat(styled(error_terminal, Style::kRed, str_cat(program, ":")), " ", sanitize(message), "\n"),
      kReaderLimitMs);
  exit_code = code;
}

absl::StatusOr<RunStore> Session::store() const {
  PL_ASSIGN_OR_RETURN(std::string folder,
                      state_folder(state_dir_option, std::getenv("XDG_STATE_HOME"), std::getenv("HOME")));
  return RunStore(std::move(folder), state_dir_option);
}

std::string Session::cluster_hint() const {
  const char* list = std::getenv("KUBECONFIG");
  const char* home = std::getenv("HOME");
  const bool any = (list != nullptr && *list != '\0') ||
                   (home != nullptr && ::access(str_cat(home, "/.kube/config").c_str(), R_OK) == 0);
  return any ? " (these are the runs of this machine; --cluster asks the cluster)" : "";
}

std::string Session::examples(std::initializer_list<Example> examples) const {
  std::string text = "Examples:";
  for (const Example& each : examples) {
    if (!kubectl || each.on_cluster) text += str_cat("\n  ", program, " ", each.arguments);
  }
  return text;
}

}  // namespace paceline::cli

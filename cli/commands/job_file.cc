#include "cli/commands/job_file.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>

#include "base/data_path.h"
#include "base/file.h"
#include "base/same_files.h"
#include "base/status.h"
#include "base/text.h"
#include "controller/api/diagnostic.h"
#include "controller/api/local.h"
#include "controller/api/parse.h"
#include "controller/api/training_spec.h"

namespace paceline::cli {

absl::StatusOr<JobFile> load_job_file(const std::string& path, std::ostream& diagnostics) {
  JobFile file;
  const bool from_stdin = path == "-";
  // Much more than the parser accepts: it has the better words for a file that is too long.
  auto text = read_file(from_stdin ? "/dev/stdin" : path, 64 * api::kMaxFileBytes);
  if (!text.ok()) {
    if (!absl::IsFailedPrecondition(text.status())) return std::move(text).status();
    text = std::string(api::kMaxFileBytes + 1, ' ');
  }
  file.text = *std::move(text);
  std::error_code error;
  const auto absolute = std::filesystem::absolute(from_stdin ? "." : path, error).lexically_normal();
  if (error) return errno_status(error.value(), str_cat("find the folder of ", path));
  file.path = from_stdin ? "-" : absolute.string();
  file.base_folder = (from_stdin ? absolute : absolute.parent_path()).string();

  auto parsed = api::parse_training_job(file.text, from_stdin ? "<stdin>" : path);
  diagnostics << api::render_diagnostics(parsed.diagnostics, file.text) << std::flush;
  if (!parsed.job) {
    const auto errors = std::count_if(parsed.diagnostics.begin(), parsed.diagnostics.end(),
                                      [](const auto& d) { return d.severity == api::Severity::kError; });
    return absl::InvalidArgumentError(str_cat(path, " has ", errors, errors == 1 ? " error" : " errors"));
  }
  file.job = *std::move(parsed.job);
  return file;
}

void make_local(JobFile& file, std::ostream& notes) {
  for (const api::Unused& unused : api::make_local(file.job)) {
    notes << file.path << ": note: " << unused.path << " is not acted on: " << unused.why << "\n";
  }
}

DataFiles look_for_data_files(const JobFile& file) {
  DataFiles found;
  if (!file.job.spec.training) return found;
  const api::Data& data = file.job.spec.training->data;
  const auto look_at = [&](const std::vector<std::string>& paths) {
    for (const std::string& path : paths) {
      const std::string absolute = api::resolve_path(file.base_folder, path);
      absl::Status why = check_no_folder(absolute);
      if (why.ok() && ::access(absolute.c_str(), R_OK) != 0)
        why = errno_status(errno, str_cat("read ", absolute));
      if (why.ok()) continue;
      if (!absl::IsNotFound(why)) {
        found.unread.Update(why);
      } else if (found.missing.size() < kMaxMissingFiles) {
        found.missing.push_back(absolute);
      }
    }
  };
  if (data.format == api::DataFormat::kCustom) return found;
  const auto absolute = [&](const std::vector<std::string>& paths) {
    std::vector<std::string> resolved;
    for (const std::string& path : paths) resolved.push_back(api::resolve_path(file.base_folder, path));
    return resolved;
  };
  found.warning = warn_of_same_files(absolute(data.train.inputs),
                                     absolute(data.test ? data.test->inputs : std::vector<std::string>()),
                                     data.test_fraction > 0);
  look_at(data.train.inputs);
  look_at(data.train.labels);
  if (data.test) {
    look_at(data.test->inputs);
    look_at(data.test->labels);
  }
  return found;
}

}  // namespace paceline::cli

#pragma once

// Reads a TrainingJob from a file for a command.

#include <ostream>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "controller/api/types.h"

namespace paceline::cli {

struct JobFile {
  api::TrainingJob job;
  std::string text;         // as it was read
  std::string base_folder;  // absolute: relative paths of the job are relative to it
  std::string path;         // absolute
};

// `path` "-" is standard input (relative paths are then relative to the working folder). Errors and warnings
// of the file itself go to `diagnostics`, rendered; the status then only counts them: INVALID_ARGUMENT.
// NOT_FOUND and the like where it can't be read.
absl::StatusOr<JobFile> load_job_file(const std::string& path, std::ostream& diagnostics);

// For commands that run jobs here: what a local run does not act on is said on `notes`, and taken out of the
// job.
void make_local(JobFile& file, std::ostream& notes);

inline constexpr std::size_t kMaxMissingFiles = 5;

struct DataFiles {
  std::vector<std::string> missing;  // absolute, at most kMaxMissingFiles
  absl::Status unread;  // why the first of those can't be read that may be there: no right to, a folder, ...
  std::string warning;  // of files that are trained on and held out; empty: there is nothing to warn of
};

// Looks whether the job's data files are on this machine.
DataFiles look_for_data_files(const JobFile& file);

}  // namespace paceline::cli

#pragma once

// Saves that failed, for the last words of a run, and checkpoints that can't be read. A member that saves as
// it leaves, or reads, can tell nobody but its log that this failed.

#include <optional>
#include <string>
#include <string_view>

#include "base/ids.h"

namespace paceline::cli {

struct FailedSave {
  Step step = 0;
  std::string error;
};

// "step 7 could not be saved: write ...: No space left on device". Pure.
std::string failed_save_text(const FailedSave& save);

// The last one that a member's log has. Pure.
std::optional<FailedSave> failed_save_in(std::string_view log);

// The one of the latest step that stands at the end of a log of this folder.
std::optional<FailedSave> logged_failed_save(const std::string& log_folder);

// Why the checkpoint `name`, or at `path`, was not gone on from, by the log, or by the end of a log of this
// folder: "state.safetensors: ..."; empty: it does not say.
std::string why_passed_over_in(std::string_view log, std::string_view name);
std::string why_passed_over(const std::string& log_folder, std::string_view path);

}  // namespace paceline::cli

#pragma once

// The command line that goes on with a run, for people to copy. Pure.

#include <string>
#include <string_view>

namespace paceline::cli {

// "paceline run job.yaml --resume digits", with --state-dir where `state_dir` isn't empty; words quoted for a
// shell where they need it. A job that came from standard input ("-") has to come from there again.
std::string resume_command(std::string_view state_dir, std::string_view job_file, std::string_view run);

}  // namespace paceline::cli

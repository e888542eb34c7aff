#pragma once

// Command lines for people to copy. Pure.

#include <string>
#include <string_view>

namespace paceline::cli {

// One word of a command line, quoted for a shell where it needs it; bytes that a terminal does not show are
// written as \x1b.
std::string shell_word(std::string_view word);

// " --state-dir FOLDER", behind the other words of a command; empty where its user gave none.
std::string state_dir_words(std::string_view state_dir);

// "paceline run job.yaml --resume digits", with --state-dir where `state_dir` isn't empty; words quoted for a
// shell where they need it. A job that came from standard input ("-") has to come from there again.
std::string resume_command(std::string_view state_dir, std::string_view job_file, std::string_view run);

// "paceline resume digits", of a run that is suspended.
std::string let_go_on_command(std::string_view state_dir, std::string_view run);

}  // namespace paceline::cli

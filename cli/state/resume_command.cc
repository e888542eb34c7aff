#include "cli/state/resume_command.h"

#include <algorithm>

#include "base/sanitize.h"
#include "base/text.h"

namespace paceline::cli {

namespace {

std::string with_escapes(std::string_view word) {
  std::string quoted = "$'";
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) {
      quoted += str_cat("\\x", absl::Hex(byte, absl::kZeroPad2));
    } else {
      quoted += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
    }
  }
  return quoted + "'";
}

}  // namespace

std::string shell_word(std::string_view word) {
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-_./+,:@%=").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return std::string(word);
  if (sanitize(word) != word || word.find_first_of("\t\n") != word.npos) return with_escapes(word);
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string state_dir_words(std::string_view state_dir) {
  return state_dir.empty() ? "" : str_cat(" --state-dir ", shell_word(state_dir));
}

std::string resume_command(std::string_view state_dir, std::string_view job_file, std::string_view run) {
  return str_cat("paceline run ", shell_word(job_file), " --resume ", shell_word(run),
                 state_dir_words(state_dir), job_file == "-" ? " < JOB" : "");
}

std::string let_go_on_command(std::string_view state_dir, std::string_view run) {
  return str_cat("paceline resume ", shell_word(run), state_dir_words(state_dir));
}

}  // namespace paceline::cli

#include "cli/state/owner_process.h"

#include <optional>
#include <string>

#include "base/file.h"
#include "base/text.h"

namespace paceline::cli {

namespace {

constexpr std::size_t kMaxStatBytes = 4096;

// The letter of /proc/PID/stat, behind the last ')': the name before it may hold anything.
std::optional<char> process_state(std::int64_t pid) {
  const auto stat = read_file(str_cat("/proc/", pid, "/stat"), kMaxStatBytes);
  if (!stat.ok()) return std::nullopt;
  const std::size_t at = stat->rfind(") ");
  if (at == std::string::npos || at + 2 >= stat->size()) return std::nullopt;
  return (*stat)[at + 2];
}

}  // namespace

bool is_alive(std::int64_t pid) {
  const auto state = process_state(pid);
  return state && *state != 'Z' && *state != 'X';
}

bool stands_still(std::int64_t pid) {
  const auto state = process_state(pid);
  return state == 'T' || state == 't';
}

}  // namespace paceline::cli

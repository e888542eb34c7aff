#include "base/cpu_quota.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

#include "base/text.h"

namespace paceline {

namespace {

constexpr std::size_t kMaxDepth = 64;  // of nested cgroups
constexpr std::int64_t kMaxProcessors = 1 << 20;

std::string_view take_until(std::string_view& text, char separator) {
  const std::size_t at = std::min(text.find(separator), text.size());
  const std::string_view taken = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return taken;
}

bool controls_cpu(std::string_view controllers) {
  while (!controllers.empty()) {
    if (take_until(controllers, ',') == "cpu") return true;
  }
  return false;
}

std::optional<std::int64_t> take_number(std::string_view& text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\n')) text.remove_prefix(1);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

}  // namespace

std::vector<QuotaFiles> quota_files(std::string_view cgroups, const std::string& root) {
  std::vector<QuotaFiles> files;
  while (!cgroups.empty()) {
    std::string_view line = take_until(cgroups, '\n');  // hierarchy:controllers:path
    const std::string_view hierarchy = take_until(line, ':');
    const std::string_view controllers = take_until(line, ':');
    const bool unified = hierarchy == "0" && controllers.empty();
    if (line.substr(0, 1) != "/" || (!unified && !controls_cpu(controllers))) continue;
    const std::string mount = unified ? root : str_cat(root, "/", controllers);
    std::string_view path = line == "/" ? std::string_view() : line;
    for (std::size_t depth = 0; depth < kMaxDepth; ++depth) {
      const std::string folder = str_cat(mount, path);
      const std::string stat = folder + "/cpu.stat";
      files.push_back(unified
                          ? QuotaFiles{folder + "/cpu.max", "", stat}
                          : QuotaFiles{folder + "/cpu.cfs_quota_us", folder + "/cpu.cfs_period_us", stat});
      if (path.empty()) break;
      path = path.substr(0, path.rfind('/'));
    }
  }
  return files;
}

std::optional<int> processors_of_quota(std::string_view text) {
  const auto quota = take_number(text);
  const auto period = quota ? take_number(text) : std::nullopt;
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  const std::int64_t whole = *quota / *period + (*quota % *period != 0 ? 1 : 0);
  return static_cast<int>(std::clamp<std::int64_t>(whole, 1, kMaxProcessors));
}

std::optional<double> throttled_seconds(std::string_view text) {
  while (!text.empty()) {
    std::string_view line = take_until(text, '\n');
    const std::string_view name = take_until(line, ' ');
    const double unit = name == "throttled_usec" ? 1e-6 : name == "throttled_time" ? 1e-9 : 0;
    if (unit == 0) continue;
    const auto number = take_number(line);
    if (number) return static_cast<double>(*number) * unit;
  }
  return std::nullopt;
}

}  // namespace paceline

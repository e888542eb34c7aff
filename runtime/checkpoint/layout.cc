#include "runtime/checkpoint/layout.h"

#include <algorithm>

namespace paceline::checkpoint {

namespace {

constexpr std::string_view kPrefix = "step-";
constexpr std::size_t kMinDigits = 9;
constexpr std::size_t kMaxDigits = 18;

}  // namespace

std::string checkpoint_name(std::int64_t step) {
  std::string digits = std::to_string(step);
  if (digits.size() < kMinDigits) digits.insert(0, kMinDigits - digits.size(), '0');
  return std::string(kPrefix) + digits;
}

std::int64_t step_of(std::string_view name) {
  if (!name.starts_with(kPrefix)) return -1;
  name.remove_prefix(kPrefix.size());
  if (name.size() < kMinDigits || name.size() > kMaxDigits) return -1;
  std::int64_t step = 0;
  for (const char c : name) {
    if (c < '0' || c > '9') return -1;
    step = step * 10 + (c - '0');
  }
  return step;
}

absl::StatusOr<std::vector<std::string>> checkpoint_names(const FileStore& files, const std::string& folder) {
  auto names = files.list(folder);
  if (absl::IsNotFound(names.status())) return std::vector<std::string>{};
  if (!names.ok()) return names.status();
  std::erase_if(*names, [](const std::string& name) { return step_of(name) < 0; });
  std::sort(names->begin(), names->end(),
            [](const std::string& a, const std::string& b) { return step_of(a) < step_of(b); });
  return *std::move(names);
}

std::string folder_of(const std::string& path) {
  const auto slash = path.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace paceline::checkpoint

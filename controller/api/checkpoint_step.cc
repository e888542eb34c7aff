#include "controller/api/checkpoint_step.h"

#include <charconv>

namespace paceline::api {

std::optional<Step> checkpoint_step(std::string_view path) {
  constexpr std::string_view kPrefix = "step-";
  std::string_view name = path.substr(path.rfind('/') + 1);
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  Step step = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), step);
  if (error != std::errc() || end != name.data() + name.size() || step < 0) return std::nullopt;
  return step;
}

}  // namespace paceline::api

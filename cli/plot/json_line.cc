#include "cli/plot/json_line.h"

namespace paceline::cli {

using nlohmann::json;

json parse_json_line(std::string_view line, std::size_t most_bytes) {
  if (line.size() > most_bytes) return nullptr;
  const auto shallow = [](int depth, json::parse_event_t, json&) { return depth <= kMostJsonLineDepth; };
  json parsed = json::parse(line.begin(), line.end(), shallow, /*allow_exceptions=*/false);
  return parsed.is_object() ? parsed : json(nullptr);
}

}  // namespace paceline::cli

#pragma once

// JSON as YAML for people: block style, keys in their order, texts without quotes where no reader could take
// them for something else. Pure.

#include <string>
#include <string_view>

namespace paceline::jobs {

// REQUIRES: `json` is JSON. Ends with a newline.
std::string yaml_of(std::string_view json);

}  // namespace paceline::jobs

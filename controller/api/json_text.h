#pragma once

// A job's file as the JSON that an API server takes: what the user wrote and nothing else, no defaults. Pure.

#include <string>
#include <string_view>

namespace paceline::api {

// Scalars without quotes become what kubectl makes of them: numbers (0644 is octal, 0x1f hexadecimal), truth
// values (also yes, no, on, off, y, n), null; all else is text. REQUIRES: parse_training_job() found no error
// in `text`.
std::string json_text(std::string_view text);

}  // namespace paceline::api

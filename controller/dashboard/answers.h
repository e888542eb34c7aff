#pragma once

// Answers of the API as HTTP has them. Pure.

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "controller/dashboard/guard.h"
#include "controller/web/http_message.h"

namespace paceline::dashboard {

web::HttpAnswer json_answer(std::string json, int status = 200);
// {"error": {"code", "message", "help"}}
web::HttpAnswer error_answer(const Refusal& refusal);
web::HttpAnswer error_answer(const absl::Status& status);

// Every answer tells browsers: no script, style or picture but ours, no frames around it, no guesses.
void add_security_headers(web::HttpAnswer& answer);

}  // namespace paceline::dashboard

#include "controller/dashboard/answers.h"

#include <utility>

#include "controller/cluster/kube/json.h"

namespace paceline::dashboard {

namespace {

constexpr char kPolicy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'none'; frame-ancestors 'none'; base-uri 'none'";

std::pair<int, const char*> code_of(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
      return {400, "BadRequest"};
    case absl::StatusCode::kUnauthenticated:
      return {401, "Unauthenticated"};
    case absl::StatusCode::kPermissionDenied:
      return {403, "Forbidden"};
    case absl::StatusCode::kNotFound:
      return {404, "NotFound"};
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kAborted:
      return {409, "Conflict"};
    case absl::StatusCode::kResourceExhausted:
      return {429, "TooMany"};
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kCancelled:
      return {503, "Unavailable"};
    default:
      return {500, "Internal"};
  }
}

}  // namespace

web::HttpAnswer json_answer(std::string json, int status) {
  return {.status = status, .body = std::move(json), .content_type = "application/json; charset=utf-8"};
}

web::HttpAnswer error_answer(const Refusal& refusal) {
  kube::Json error = {{"code", refusal.code}, {"message", refusal.message}};
  if (!refusal.help.empty()) error["help"] = refusal.help;
  return json_answer(kube::dump({{"error", std::move(error)}}), refusal.status);
}

web::HttpAnswer error_answer(const absl::Status& status) {
  const auto [http, code] = code_of(status.code());
  return error_answer(Refusal{http, code, std::string(status.message()), ""});
}

void add_security_headers(web::HttpAnswer& answer) {
  for (const auto& [name, value] : {std::pair{"Content-Security-Policy", kPolicy},
                                    {"X-Content-Type-Options", "nosniff"},
                                    {"X-Frame-Options", "DENY"},
                                    {"Referrer-Policy", "no-referrer"},
                                    {"Cross-Origin-Opener-Policy", "same-origin"},
                                    {"Cross-Origin-Resource-Policy", "same-origin"}})
    answer.headers.emplace_back(name, value);
}

}  // namespace paceline::dashboard

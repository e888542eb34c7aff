#include "controller/cluster/kube/api_error.h"

#include <algorithm>
#include <utility>

#include "absl/strings/cord.h"
#include "base/retry_after.h"
#include "base/status.h"

namespace paceline::kube {

namespace {

constexpr char kStatusObject[] = "paceline.dev/status";

absl::StatusCode code_of(int status, std::string_view reason) {
  using enum absl::StatusCode;
  static constexpr std::pair<int, absl::StatusCode> kCodes[] = {
      {400, kInvalidArgument}, {401, kUnauthenticated}, {403, kPermissionDenied}, {404, kNotFound},
      {405, kUnimplemented},   {406, kUnimplemented},   {410, kOutOfRange},       {413, kInvalidArgument},
      {415, kUnimplemented},   {422, kInvalidArgument}};
  if (status == 409) return reason == "AlreadyExists" ? kAlreadyExists : kAborted;
  for (const auto& [known, code] : kCodes) {
    if (known == status) return code;
  }
  return status == 429 || (status >= 500 && status < 600) ? kUnavailable : kUnknown;
}

absl::Status make(int status, std::string_view reason, std::string_view words, std::optional<Duration> retry,
                  std::string_view context) {
  std::string message = context.empty() ? "" : str_cat(context, ": ");
  message += std::to_string(status);
  if (!reason.empty()) message += str_cat(" ", sanitize_line(reason, 64));
  if (!words.empty()) message += str_cat(": ", sanitize_line(words, kMaxErrorBytes));
  absl::Status result(code_of(status, reason), message);
  if (retry) set_retry_after(result, *retry);
  return result;
}

std::optional<Duration> retry_in(const Json& status) {
  const std::int64_t seconds = integer_at(status, {"details", "retryAfterSeconds"});
  if (seconds <= 0 || seconds > 24 * 3600) return std::nullopt;
  return std::chrono::seconds(seconds);
}

}  // namespace

absl::Status error_of(const Response& response, std::string_view context) {
  const auto parsed = parse_json(response.body);
  if (!parsed.ok() || text_at(*parsed, {"kind"}) != "Status") {
    return make(response.status, "", response.body, response.retry_after, context);
  }
  const auto retry = response.retry_after ? response.retry_after : retry_in(*parsed);
  absl::Status error =
      make(response.status, text_at(*parsed, {"reason"}), text_at(*parsed, {"message"}), retry, context);
  if (response.body.size() <= kMaxKeptStatusBytes) error.SetPayload(kStatusObject, absl::Cord(response.body));
  return error;
}

absl::Status error_of(const Json& status_object) {
  const std::int64_t code = integer_at(status_object, {"code"});
  if (code < 300 || code > 599) {
    return absl::UnknownError(
        str_cat("an error without a code: ", sanitize_line(dump(status_object), kMaxErrorBytes)));
  }
  return make(static_cast<int>(code), text_at(status_object, {"reason"}), text_at(status_object, {"message"}),
              retry_in(status_object), {});
}

std::optional<Json> status_object_of(const absl::Status& status) {
  const auto payload = status.GetPayload(kStatusObject);
  if (!payload) return std::nullopt;
  auto json = parse_json(std::string(*payload));
  return json.ok() ? std::optional(*std::move(json)) : std::nullopt;
}

bool namespace_ends(const absl::Status& status) {
  const std::optional<Json> object = status_object_of(status);
  if (!object) return false;
  return std::ranges::any_of(list_at(*object, {"details", "causes"}), [](const Json& cause) {
    return text_at(cause, {"reason"}) == "NamespaceTerminating";
  });
}

bool is_over_quota(const absl::Status& status) {
  const std::optional<Json> object = status_object_of(status);
  if (!object || !absl::IsPermissionDenied(status)) return false;
  const std::string& message = text_at(*object, {"message"});  // Kubernetes has no reason of its own for it
  return message.find("exceeded quota") != std::string::npos;
}

const char* method_name(Method method) {
  constexpr const char* kNames[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(Method::kDelete) + 1);
  return kNames[static_cast<std::size_t>(method)];
}

std::string describe(const Request& request) {
  return str_cat(method_name(request.method), " ", request.path.substr(0, request.path.find('?')));
}

}  // namespace paceline::kube

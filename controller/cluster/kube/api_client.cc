#include "controller/cluster/kube/api_client.h"

#include <algorithm>

#include "base/retry_after.h"
#include "base/status.h"
#include "controller/cluster/kube/api_error.h"
#include "controller/cluster/kube/times.h"

namespace paceline::kube {

namespace {

constexpr char kJsonType[] = "application/json";
constexpr char kApplyType[] = "application/apply-patch+yaml";  // JSON is YAML
constexpr char kMergeType[] = "application/merge-patch+json";
constexpr Duration kShortestTotal = std::chrono::milliseconds(1);  // zero would be without end
constexpr Duration kFirstWait = std::chrono::milliseconds(200);    // where the server gives no time
// A watch without bookmarks may be silent for long; one that is silent for longer is asked for again.
constexpr Duration kWatchSilence = std::chrono::seconds(150);
// A log that says nothing may be well; a connection that was lost without a word is found by asking again.
constexpr Duration kSilentFollow = std::chrono::minutes(5);

Request with_body(Method method, std::string path, std::string_view type, const Json& body) {
  Request request;
  request.method = method;
  request.path = std::move(path);
  request.content_type = type;
  request.body = dump(body);
  return request;
}

bool may_repeat(const absl::StatusOr<Response>& response) {
  return response.ok() && (response->status == 429 || (response->status >= 500 && response->retry_after));
}

bool is_success(const Response& response) {
  return response.status >= 200 && response.status < 300;
}

}  // namespace

ApiClient::ApiClient(Transport& transport, const Clock& clock, std::uint64_t seed, std::stop_token stop,
                     Pause pause, Duration call_limit)
    : transport_(transport),
      clock_(clock),
      stop_(std::move(stop)),
      pause_(std::move(pause)),
      call_limit_(call_limit),
      rng_(seed, 0x6b756265u) {}

Duration ApiClient::jittered(Duration wait) {
  const float part = rng_.lock()->uniform();
  return wait + Duration(static_cast<std::int64_t>(static_cast<double>(wait.count()) * 0.5 * part));
}

absl::StatusOr<Response> ApiClient::send(Request request, const Exchange& exchange, std::stop_token stop,
                                         Duration limit) {
  const Deadline deadline = Deadline::after(clock_.now(), limit);
  Duration wait = kFirstWait;
  for (int attempt = 1;; ++attempt) {
    if (stop.stop_requested()) return absl::CancelledError(str_cat(describe(request), ": stopped"));
    request.timeout = std::min(request.timeout, deadline.remaining(clock_.now()));
    absl::StatusOr<Response> response = exchange(request);
    if (!response.ok()) return response.status();
    if (is_success(*response)) return response;
    const absl::Status error = error_of(*response, describe(request));
    if (!may_repeat(response) || attempt == kMaxTries) return error;
    const Duration pause = jittered(std::max(wait, retry_after(error).value_or(Duration::zero())));
    if (pause > deadline.remaining(clock_.now())) return error;
    if (!pause_(pause, stop)) return absl::CancelledError(str_cat(describe(request), ": stopped"));
    wait *= 2;
  }
}

absl::StatusOr<Json> ApiClient::send_json(Request request, Duration limit) {
  const auto call = [this](const Request& each) { return transport_.call(each); };
  const std::string what = describe(request);
  PL_ASSIGN_OR_RETURN(const Response response,
                      send(std::move(request), call, stop_, std::min(limit, call_limit_)));
  absl::StatusOr<Json> json = parse_json(response.body);
  if (!json.ok()) return with_context(json.status(), what);
  if (!json->is_object()) {
    return absl::DataLossError(str_cat(what, ": no object, but \"", sanitize_line(response.body, 80), "\""));
  }
  return json;
}

absl::StatusOr<Json> ApiClient::get(const Resource& resource, std::string_view ns, std::string_view name,
                                    Duration within) {
  Request request;
  request.path = path_of(resource, ns, name);
  return send_json(std::move(request), within);
}

absl::StatusOr<Json> ApiClient::create(const Resource& resource, std::string_view ns, const Json& object,
                                       Unknown unknown) {
  const std::string path = path_of(
      resource, ns, {}, {},
      {{"fieldManager", kFieldManager}, {"fieldValidation", unknown == Unknown::kRefuse ? "Strict" : ""}});
  return send_json(with_body(Method::kPost, path, kJsonType, object));
}

absl::StatusOr<Json> ApiClient::remove(const Resource& resource, std::string_view ns, std::string_view name,
                                       const DeleteOptions& options) {
  Json body = {{"apiVersion", "v1"}, {"kind", "DeleteOptions"}, {"propagationPolicy", options.propagation}};
  if (!options.uid.empty()) body["preconditions"]["uid"] = options.uid;
  if (options.grace) {
    body["gracePeriodSeconds"] = std::chrono::ceil<std::chrono::seconds>(*options.grace).count();
  }
  return send_json(with_body(Method::kDelete, path_of(resource, ns, name), kJsonType, body));
}

absl::StatusOr<Json> ApiClient::apply(const Resource& resource, std::string_view ns, std::string_view name,
                                      std::string_view subresource, const Json& object,
                                      const WriteOptions& options) {
  const Query query = {{"fieldManager", options.field_manager},
                       {"force", options.force ? "true" : ""},
                       {"dryRun", options.dry_run ? "All" : ""}};
  return send_json(
      with_body(Method::kPatch, path_of(resource, ns, name, subresource, query), kApplyType, object));
}

absl::StatusOr<Json> ApiClient::merge_patch(const Resource& resource, std::string_view ns,
                                            std::string_view name, std::string_view subresource,
                                            const Json& patch, const WriteOptions& options) {
  const Query query = {{"fieldManager", options.field_manager}, {"dryRun", options.dry_run ? "All" : ""}};
  return send_json(
      with_body(Method::kPatch, path_of(resource, ns, name, subresource, query), kMergeType, patch));
}

absl::StatusOr<std::string> ApiClient::log(std::string_view ns, std::string_view pod,
                                           std::string_view container, int lines, std::size_t limit_bytes,
                                           Duration limit) {
  Request request;
  request.path = path_of(kPods, ns, pod, "log",
                         {{"container", std::string(container)},
                          {"tailLines", std::to_string(lines)},
                          {"limitBytes", std::to_string(limit_bytes)}});
  request.max_response_bytes = limit_bytes + 4096;
  const auto call = [this](const Request& each) { return transport_.call(each); };
  PL_ASSIGN_OR_RETURN(Response response, send(request, call, stop_, std::min(limit, call_limit_)));
  return std::move(response.body);
}

absl::Status ApiClient::stream_log(std::string_view ns, std::string_view pod, const LogOptions& options,
                                   const std::function<bool(std::string_view)>& on_bytes,
                                   std::stop_token stop) {
  const auto flag = [](bool value) { return std::string(value ? "true" : ""); };
  std::string since;
  if (options.since) since = std::to_string(std::chrono::ceil<std::chrono::seconds>(*options.since).count());
  Request request;
  request.path = path_of(kPods, ns, pod, "log",
                         {{"container", options.container},
                          {"follow", flag(options.follow)},
                          {"timestamps", flag(options.timestamps)},
                          {"tailLines", options.lines ? std::to_string(*options.lines) : ""},
                          {"sinceSeconds", since},
                          {"sinceTime", options.from ? format_seconds(*options.from) : ""}});
  request.timeout = options.follow ? kSilentFollow : kCallLimit;
  const absl::StatusOr<Response> response = transport_.stream(request, on_bytes, stop);
  if (!response.ok()) return response.status();
  return is_success(*response) ? absl::OkStatus() : error_of(*response, describe(request));
}

absl::StatusOr<Page> ApiClient::list(const Scope& scope, int limit, std::string_view continue_token,
                                     std::stop_token stop, Duration within) {
  const Deadline deadline = Deadline::after(clock_.now(), within);
  Request request;
  request.path = path_of(scope.resource, scope.ns, {}, {},
                         {{"limit", std::to_string(limit)},
                          {"labelSelector", scope.label_selector},
                          {"fieldSelector", scope.field_selector},
                          {"continue", std::string(continue_token)}});
  std::string body;
  bool too_large = false;
  const auto collect = [&](std::string_view bytes) {
    too_large = body.size() + bytes.size() > kMaxListBytes;
    if (!too_large) body.append(bytes);
    return !too_large;
  };
  const auto stream = [&](const Request& each) {
    body.clear();
    Request with_end = each;
    with_end.total = std::max(deadline.remaining(clock_.now()), kShortestTotal);
    return transport_.stream(with_end, collect, stop);
  };
  const absl::Status sent = send(request, stream, stop, std::min(within, call_limit_)).status();
  if (too_large) {
    return absl::ResourceExhaustedError(str_cat(describe(request), ": a page of ", limit,
                                                " objects is larger than ", kMaxListBytes, " bytes"));
  }
  PL_RETURN_IF_ERROR(sent);
  absl::StatusOr<Json> json = parse_json(body);
  if (!json.ok()) return with_context(json.status(), describe(request));
  const auto items = json->find("items");
  if (items == json->end() || !(items->is_array() || items->is_null())) {
    return absl::DataLossError(
        str_cat(describe(request), ": no list, but \"", sanitize_line(body, 80), "\""));
  }
  Page page;
  page.resource_version = text_at(*json, {"metadata", "resourceVersion"});
  page.continue_token = text_at(*json, {"metadata", "continue"});
  if (items->is_array()) page.items = std::move(items->get_ref<Json::array_t&>());
  return page;
}

absl::Status ApiClient::watch(const Scope& scope, std::string_view resource_version, Duration timeout,
                              const std::function<bool(std::string_view)>& on_bytes, std::stop_token stop) {
  const auto seconds = std::chrono::ceil<std::chrono::seconds>(timeout).count();
  Request request;
  request.path = path_of(scope.resource, scope.ns, {}, {},
                         {{"watch", "true"},
                          {"allowWatchBookmarks", "true"},
                          {"resourceVersion", std::string(resource_version)},
                          {"timeoutSeconds", std::to_string(seconds)},
                          {"labelSelector", scope.label_selector},
                          {"fieldSelector", scope.field_selector}});
  request.timeout = kWatchSilence;
  const absl::StatusOr<Response> response = transport_.stream(request, on_bytes, stop);
  if (!response.ok()) return response.status();
  if (is_success(*response)) return absl::OkStatus();
  return error_of(*response, describe(request));
}

}  // namespace paceline::kube

#include "cli/cluster/dashboard_client.h"

#include <stop_token>

#include "base/file.h"
#include "base/status.h"
#include "base/text.h"
#include "controller/cluster/kube/curl_transport.h"
#include "controller/cluster/kube/json.h"

namespace paceline::cli {

namespace {

constexpr std::size_t kMaxShownBytes = 500;
constexpr std::size_t kMostPemBytes = 64 << 10;
constexpr Duration kCallLimit = std::chrono::seconds(30);
constexpr int kOk = 200;

bool is_loopback(std::string_view host) {
  return host == "localhost" || host == "127.0.0.1" || host == "[::1]";
}

absl::StatusCode code_of(int status) {
  switch (status) {
    case 400:
      return absl::StatusCode::kInvalidArgument;
    case 401:
      return absl::StatusCode::kUnauthenticated;
    case 403:
      return absl::StatusCode::kPermissionDenied;
    case 404:
      return absl::StatusCode::kNotFound;
    default:
      return absl::StatusCode::kUnavailable;
  }
}

}  // namespace

absl::Status check_dashboard_url(const std::string& url) {
  constexpr std::string_view kHttp = "http://", kHttps = "https://";
  if (url.starts_with(kHttps) && url.size() > kHttps.size()) return absl::OkStatus();
  if (url.starts_with(kHttp)) {
    const std::string_view rest = std::string_view(url).substr(kHttp.size());
    const std::string_view authority = rest.substr(0, rest.find_first_of("/?#"));
    const std::size_t host_end = authority.find_last_not_of("0123456789");
    const bool has_port = host_end != std::string_view::npos && authority[host_end] == ':';
    if (is_loopback(has_port ? authority.substr(0, host_end) : authority)) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      str_cat("the dashboard's address is ", url,
              ": it must be https://HOST, or http:// of this machine (127.0.0.1, [::1], localhost), because "
              "your token is sent there"));
}

absl::Status no_dashboard(const std::string& what) {
  return absl::InvalidArgumentError(
      str_cat(what,
              " are told by the dashboard of the controller: name its address by --dashboard URL or "
              "$PACELINE_DASHBOARD, https://localhost:8090 for instance after `kubectl -n paceline-system "
              "port-forward service/paceline 8090`, and its authority by --dashboard-ca FILE"));
}

absl::StatusOr<std::unique_ptr<DashboardClient>> DashboardClient::open(const std::string& url,
                                                                       const std::string& ca_file,
                                                                       kube::Credentials& credentials,
                                                                       const Clock& clock) {
  PL_RETURN_IF_ERROR(check_dashboard_url(url));
  PL_ASSIGN_OR_RETURN(const kube::IdentityPtr identity,
                      credentials.get(Deadline::after(clock.now(), kCallLimit), std::stop_token()));
  kube::FixedIdentity token;
  for (const auto& header : identity->headers) {
    if (header.first == "Authorization") token.headers.push_back(header);
  }
  if (token.headers.empty())
    return absl::UnauthenticatedError(
        "the kubeconfig's user has no token, and the controller's dashboard knows its viewers by that alone: "
        "name a context with one (`kubectl create token NAME` makes one of a ServiceAccount)");
  kube::Endpoint endpoint{.server = url};
  if (!ca_file.empty()) {
    PL_ASSIGN_OR_RETURN(endpoint.ca_pem, read_file(ca_file, kMostPemBytes));
  }
  PL_ASSIGN_OR_RETURN(auto transport,
                      kube::open_curl_transport(endpoint, kube::fixed_credentials(token), Logger::none()));
  return std::make_unique<DashboardClient>(std::move(transport), url);
}

absl::StatusOr<std::string> DashboardClient::get(const std::string& path) const {
  const auto response = transport_->call({.path = "/api/v1" + path, .timeout = kCallLimit});
  if (!response.ok())
    return absl::Status(response.status().code(),
                        str_cat("can't ask the dashboard at ", url_, ": ", response.status().message()));
  const auto json = kube::parse_json(response->body);
  if (response->status == kOk && json.ok()) return response->body;
  const std::string& message = json.ok() ? kube::text_at(*json, {"error", "message"}) : "";
  const std::string& help = json.ok() ? kube::text_at(*json, {"error", "help"}) : "";
  if (message.empty())
    return absl::UnavailableError(
        str_cat("what answers at ", url_, " is no dashboard of Paceline (status ", response->status, ")"));
  return absl::Status(code_of(response->status),
                      str_cat("the dashboard at ", url_, ": ", kube::sanitize_line(message, kMaxShownBytes),
                              help.empty() ? "" : "; ", kube::sanitize_line(help, kMaxShownBytes)));
}

}  // namespace paceline::cli

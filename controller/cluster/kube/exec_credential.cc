#include "controller/cluster/kube/exec_credential.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "absl/strings/escaping.h"
#include "absl/time/time.h"
#include "base/status.h"

namespace paceline::kube {

namespace {

using Json = nlohmann::json;

absl::StatusOr<std::string> text_field(const Json& object, const char* field) {
  const auto found = object.find(field);
  if (found == object.end() || found->is_null()) return std::string();
  if (!found->is_string()) return absl::InvalidArgumentError(str_cat("status.", field, " must be a text"));
  return found->get<std::string>();
}

}  // namespace

std::string exec_info(const ExecPlugin& plugin, const Endpoint& endpoint, bool interactive) {
  Json info = {{"apiVersion", plugin.api_version}, {"kind", "ExecCredential"}};
  info["spec"]["interactive"] = interactive;
  if (plugin.provide_cluster_info) {
    Json& cluster = info["spec"]["cluster"];
    cluster["server"] = endpoint.server;
    if (!endpoint.tls_server_name.empty()) cluster["tls-server-name"] = endpoint.tls_server_name;
    if (endpoint.insecure_skip_tls_verify) cluster["insecure-skip-tls-verify"] = true;
    if (!endpoint.proxy_url.empty()) cluster["proxy-url"] = endpoint.proxy_url;
    if (!endpoint.ca_pem.empty())
      cluster["certificate-authority-data"] = std::string(absl::Base64Escape(endpoint.ca_pem));
    cluster["config"] = nullptr;
  }
  return info.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<ExecCredential> parse_exec_credential(std::string_view text, std::string_view api_version) {
  const Json root = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!root.is_object()) {
    return absl::InvalidArgumentError(
        text.empty() ? "its output is empty, and an ExecCredential as JSON was expected"
                     : "its output is no JSON object, and an ExecCredential was expected");
  }
  if (root.value("/kind"_json_pointer, Json()) != "ExecCredential")
    return absl::InvalidArgumentError("its output is of another kind than ExecCredential");
  if (root.value("/apiVersion"_json_pointer, Json()) != std::string(api_version)) {
    return absl::InvalidArgumentError(str_cat(
        "its output has another apiVersion than ", api_version,
        ", which the kubeconfig asks for; set the kubeconfig's apiVersion to what the plug-in speaks"));
  }
  const auto status = root.find("status");
  if (status == root.end() || !status->is_object())
    return absl::InvalidArgumentError("its output has no status, which would hold the credential");
  ExecCredential credential;
  PL_ASSIGN_OR_RETURN(credential.token, text_field(*status, "token"));
  PL_ASSIGN_OR_RETURN(credential.certificate_pem, text_field(*status, "clientCertificateData"));
  PL_ASSIGN_OR_RETURN(credential.key_pem, text_field(*status, "clientKeyData"));
  PL_ASSIGN_OR_RETURN(const std::string expires, text_field(*status, "expirationTimestamp"));
  while (!credential.token.empty() && (credential.token.back() == '\n' || credential.token.back() == '\r'))
    credential.token.pop_back();
  if (std::any_of(credential.token.begin(), credential.token.end(),
                  [](char c) { return static_cast<unsigned char>(c) <= ' '; })) {
    return absl::InvalidArgumentError("status.token holds a blank or a control character");
  }
  if (credential.certificate_pem.empty() != credential.key_pem.empty())
    return absl::InvalidArgumentError("status has only one of clientCertificateData and clientKeyData");
  if (credential.token.empty() && credential.certificate_pem.empty()) {
    return absl::InvalidArgumentError(
        "status has neither a token nor clientCertificateData with clientKeyData");
  }
  if (!expires.empty()) {
    absl::Time time;
    std::string problem;
    if (!absl::ParseTime(absl::RFC3339_full, expires, &time, &problem)) {
      return absl::InvalidArgumentError(str_cat("status.expirationTimestamp \"", expires.substr(0, 60),
                                                "\" is no RFC 3339 time, e.g. 2026-01-31T12:00:00Z"));
    }
    // A WallTime ends in 2262; what lies beyond is never.
    if (time < absl::FromUnixSeconds(9'000'000'000)) {
      credential.expires =
          WallTime(std::chrono::nanoseconds(absl::ToUnixNanos(std::max(time, absl::UnixEpoch()))));
    }
  }
  return credential;
}

}  // namespace paceline::kube

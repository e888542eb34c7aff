#pragma once

// What is said to a credential plug-in, and what it answers (client.authentication.k8s.io/v1 and v1beta1):
// https://kubernetes.io/docs/reference/access-authn-authz/authentication/#client-go-credential-plugins. Pure.

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "controller/cluster/kube/endpoint.h"
#include "controller/cluster/kube/kubeconfig.h"

namespace paceline::kube {

// The value of KUBERNETES_EXEC_INFO. `endpoint` goes in where the plug-in asks for it.
std::string exec_info(const ExecPlugin& plugin, const Endpoint& endpoint, bool interactive);

struct ExecCredential {
  std::string token, certificate_pem, key_pem;  // a token, a certificate with its key, or all
  std::optional<WallTime> expires;
};

// INVALID_ARGUMENT, with the field that is wrong; never with a credential.
absl::StatusOr<ExecCredential> parse_exec_credential(std::string_view json, std::string_view api_version);

}  // namespace paceline::kube

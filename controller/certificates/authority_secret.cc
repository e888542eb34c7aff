#include "controller/certificates/authority_secret.h"

#include "absl/strings/escaping.h"
#include "base/status.h"
#include "base/text.h"
#include "controller/cluster/kube/json.h"

namespace paceline::certificates {

namespace {

using kube::Json;

absl::StatusOr<KeyPair> authority_in(const Json& secret, const std::string& where, WallTime now) {
  KeyPair pair;
  const std::string remedy = str_cat("; delete ", where,
                                     ", and a new one is made: members that run start again then, since they "
                                     "trust the old one");
  if (!absl::Base64Unescape(kube::text_at(secret, {"data", "tls.crt"}), &pair.certificate_pem) ||
      !absl::Base64Unescape(kube::text_at(secret, {"data", "tls.key"}), &pair.key_pem))
    return absl::FailedPreconditionError(
        str_cat(where, ": tls.crt or tls.key is missing or not base64", remedy));
  const auto expiry = expiry_of(pair.certificate_pem);
  if (!expiry.ok())
    return absl::FailedPreconditionError(str_cat(where, ": tls.crt: ", expiry.status().message(), remedy));
  if (*expiry <= now)
    return absl::FailedPreconditionError(
        str_cat(where, ": the certificate has expired at ", format_wall_time(*expiry), remedy));
  return pair;
}

Json secret_of(const std::string& name, const KeyPair& pair) {
  return {{"apiVersion", "v1"},
          {"kind", "Secret"},
          {"metadata", {{"name", name}, {"labels", {{"app.kubernetes.io/managed-by", "paceline"}}}}},
          {"type", "kubernetes.io/tls"},
          {"stringData", {{"tls.crt", pair.certificate_pem}, {"tls.key", pair.key_pem}}}};
}

}  // namespace

absl::StatusOr<KeyPair> find_or_make_authority(kube::ApiClient& api, const std::string& ns,
                                               const std::string& secret, WallTime now) {
  const std::string where = str_cat("Secret ", ns, "/", secret);
  auto found = api.get(kube::kSecrets, ns, secret);
  if (absl::IsNotFound(found.status())) {
    PL_ASSIGN_OR_RETURN(const KeyPair made, make_authority("paceline authority", now, kAuthorityValid));
    const absl::Status created = api.create(kube::kSecrets, ns, secret_of(secret, made)).status();
    if (created.ok()) return made;
    if (!absl::IsAlreadyExists(created)) return with_context(created, where);
    found = api.get(kube::kSecrets, ns, secret);  // another replica was faster
  }
  if (!found.ok()) return with_context(found.status(), where);
  return authority_in(*found, where, now);
}

}  // namespace paceline::certificates

#include "absl/strings/escaping.h"
#include "base/file.h"
#include "base/status.h"
#include "controller/cluster/kube/credentials.h"
#include "controller/cluster/kube/exec_plugin.h"
#include "controller/cluster/kube/identity_files.h"

namespace paceline::kube {

namespace {

constexpr std::size_t kMaxFiles = 64;  // in $KUBECONFIG

std::string variable(const AccessOptions& options, const char* name) {
  return options.variable == nullptr ? "" : options.variable(name).value_or("");
}

// The headers of a user without a token file or plug-in are all; the others add to them.
FixedIdentity headers_of(const KubeconfigUser& user) {
  FixedIdentity identity;
  if (user.token_file.empty() && !user.token.empty()) {
    identity.headers.emplace_back("Authorization", str_cat("Bearer ", user.token));
  } else if (!user.username.empty()) {
    const std::string pair = str_cat(user.username, ":", user.password);
    identity.headers.emplace_back("Authorization", str_cat("Basic ", absl::Base64Escape(pair)));
  }
  if (!user.impersonate.empty()) identity.headers.emplace_back("Impersonate-User", user.impersonate);
  if (!user.impersonate_uid.empty()) identity.headers.emplace_back("Impersonate-Uid", user.impersonate_uid);
  for (const std::string& group : user.impersonate_groups)
    identity.headers.emplace_back("Impersonate-Group", group);
  return identity;
}

absl::StatusOr<KubeAccess> access_of(const KubeconfigTarget& target, const Clock& clock,
                                     const Logger& logger) {
  KubeAccess access;
  access.context = target.context;
  access.ns = target.ns;
  access.source = str_cat("context ", target.context, " of ", target.cluster.file);
  access.endpoint.server = target.cluster.server;
  access.endpoint.tls_server_name = target.cluster.tls_server_name;
  access.endpoint.proxy_url = target.cluster.proxy_url;
  access.endpoint.insecure_skip_tls_verify = target.cluster.insecure_skip_tls_verify;
  PL_ASSIGN_OR_RETURN(access.endpoint.ca_pem,
                      read_pem(target.cluster.certificate_authority,
                               str_cat(target.cluster.file, ": cluster \"", target.cluster.name,
                                       "\": certificate-authority")));
  const KubeconfigUser& user = target.user;
  FixedIdentity fixed = headers_of(user);
  std::unique_ptr<Credentials> credentials;
  if (!user.token_file.empty()) {
    credentials = token_file_credentials(user.token_file, std::move(fixed), clock, logger);
  } else if (user.exec.has_value() && user.token.empty() && user.username.empty()) {
    const Duration timeout = exec_is_interactive(*user.exec) ? kInteractiveExecTimeout : kExecTimeout;
    const std::string where = str_cat(user.file, ": user \"", user.name, "\"");
    credentials = exec_credentials(
        [plugin = *user.exec, endpoint = access.endpoint, timeout, where](std::stop_token stop) {
          auto credential = run_exec_plugin(plugin, endpoint, timeout, std::move(stop));
          if (!credential.ok()) credential = with_context(credential.status(), where);
          return credential;
        },
        std::move(fixed), clock);
  } else {
    credentials = fixed_credentials(std::move(fixed));
  }
  PL_ASSIGN_OR_RETURN(access.credentials,
                      with_files(std::move(credentials),
                                 {.certificate = user.client_certificate,
                                  .key = user.client_key,
                                  .ca = target.cluster.certificate_authority,
                                  .where = str_cat(user.file, ": user \"", user.name, "\": ")},
                                 clock, logger));
  return access;
}

struct Files {
  std::vector<std::string> paths;
  bool must_exist = false;
};

Files kubeconfig_files(const AccessOptions& options) {
  if (!options.kubeconfig.empty()) return {{options.kubeconfig}, true};
  Files files;
  const std::string list = variable(options, "KUBECONFIG");
  for (std::size_t from = 0; from <= list.size();) {
    const std::size_t to = std::min(list.find(':', from), list.size());
    if (to > from && files.paths.size() < kMaxFiles) files.paths.push_back(list.substr(from, to - from));
    from = to + 1;
  }
  const std::string home = variable(options, "HOME");
  if (files.paths.empty() && !home.empty()) files.paths.push_back(str_cat(home, "/.kube/config"));
  return files;
}

absl::StatusOr<Kubeconfig> read_kubeconfigs(const Files& files) {
  std::vector<Kubeconfig> configs;
  for (const std::string& path : files.paths) {
    auto text = read_file(path, kMaxKubeconfigBytes);
    if (absl::IsNotFound(text.status()) && !files.must_exist) continue;
    if (!text.ok()) return with_context(text.status(), "kubeconfig");
    PL_ASSIGN_OR_RETURN(Kubeconfig config, parse_kubeconfig(*text, path));
    configs.push_back(std::move(config));
  }
  return merge_kubeconfigs(std::move(configs));
}

absl::StatusOr<KubeAccess> in_cluster(const AccessOptions& options, const Clock& clock,
                                      const Logger& logger) {
  const std::string host = variable(options, "KUBERNETES_SERVICE_HOST");
  const std::string port = variable(options, "KUBERNETES_SERVICE_PORT");
  const std::string& folder = options.service_account_folder;
  KubeAccess access;
  access.source = "the pod's service account";
  const bool ipv6 = host.find(':') != std::string::npos && host.front() != '[';
  access.endpoint.server = str_cat("https://", ipv6 ? "[" : "", host, ipv6 ? "]" : "", ":", port);
  PL_ASSIGN_OR_RETURN(access.endpoint.ca_pem,
                      read_pem({.path = str_cat(folder, "/ca.crt")}, "the pod's service account"));
  // Read now, so that a pod without a token (automountServiceAccountToken: false) fails at its start.
  const std::string token = str_cat(folder, "/token");
  PL_RETURN_IF_ERROR(with_context(read_file(token, kMaxPemBytes).status(), "the pod's service account"));
  PL_ASSIGN_OR_RETURN(access.credentials, with_files(token_file_credentials(token, {}, clock, logger),
                                                     {.certificate = {},
                                                      .key = {},
                                                      .ca = {.pem = {}, .path = str_cat(folder, "/ca.crt")},
                                                      .where = "the pod's service account: "},
                                                     clock, logger));
  auto ns = read_file(str_cat(folder, "/namespace"), 1024);
  access.ns = ns.ok() ? *ns : "default";
  while (!access.ns.empty() && access.ns.back() == '\n') access.ns.pop_back();
  return access;
}

}  // namespace

absl::StatusOr<KubeAccess> find_access(const AccessOptions& options, const Clock& clock, Logger logger) {
  const Files files = kubeconfig_files(options);
  PL_ASSIGN_OR_RETURN(const Kubeconfig config, read_kubeconfigs(files));
  if (!config.files.empty()) {
    PL_ASSIGN_OR_RETURN(const KubeconfigTarget target, select_context(config, options.context));
    return access_of(target, clock, logger);
  }
  if (!variable(options, "KUBERNETES_SERVICE_HOST").empty() &&
      !variable(options, "KUBERNETES_SERVICE_PORT").empty()) {
    return in_cluster(options, clock, logger);
  }
  std::string looked = files.paths.empty() ? "a kubeconfig (neither KUBECONFIG nor HOME is set), " : "";
  for (const std::string& path : files.paths) looked += str_cat(path, ", ");
  return absl::NotFoundError(str_cat("no cluster to talk to: looked for ", looked,
                                     "and for a pod's service account (KUBERNETES_SERVICE_HOST is not set); "
                                     "name a kubeconfig by --kubeconfig or "
                                     "KUBECONFIG"));
}

}  // namespace paceline::kube

#pragma once

// kubeconfig files as kubectl reads them: text to values, several files to one, one context of it. Pure:
// nothing is read here, files that a kubeconfig names are given back as paths.
//
// Every error is INVALID_ARGUMENT (the text) or NOT_FOUND (a name), and says file, entry, field, and what to
// do. Fields that are not known are ignored, as kubectl does.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <optional>

#include "absl/status/statusor.h"

namespace paceline::kube {

inline constexpr std::size_t kMaxKubeconfigBytes = 4u << 20;

// A PEM text, or the path of the file that holds it; both empty: none.
struct PemSource {
  std::string pem, path;
  bool empty() const { return pem.empty() && path.empty(); }
};

struct KubeconfigCluster {
  std::string name, file;  // the entry's name, and the file that it stands in
  std::string server, tls_server_name, proxy_url;
  PemSource certificate_authority;  // empty: the system's
  bool insecure_skip_tls_verify = false;
};

enum class InteractiveMode : std::uint8_t { kNever, kIfAvailable, kAlways };

struct ExecPlugin {
  std::string api_version;  // client.authentication.k8s.io/v1 or v1beta1
  std::string command;      // a name in PATH, or a path
  std::vector<std::string> args;
  std::vector<std::pair<std::string, std::string>> env;  // added to ours
  std::string install_hint;
  InteractiveMode interactive_mode = InteractiveMode::kIfAvailable;
  bool provide_cluster_info = false;
};

struct KubeconfigUser {
  std::string name, file;
  PemSource client_certificate, client_key;
  std::string token, token_file, username, password;
  std::string impersonate, impersonate_uid;
  std::vector<std::string> impersonate_groups;
  std::optional<ExecPlugin> exec;
};

struct KubeconfigContext {
  std::string name, file, cluster, user, ns;
};

struct Kubeconfig {
  std::vector<std::string> files;
  std::vector<KubeconfigCluster> clusters;
  std::vector<KubeconfigUser> users;
  std::vector<KubeconfigContext> contexts;
  std::string current_context;
};

// YAML or JSON. `path` is the file's: it is named in errors, and relative paths in the text start at its
// folder.
absl::StatusOr<Kubeconfig> parse_kubeconfig(std::string_view text, const std::string& path);

// For each name the first file that has it wins, with all of the entry; so does the first current-context.
Kubeconfig merge_kubeconfigs(std::vector<Kubeconfig> configs);

struct KubeconfigTarget {
  std::string context, ns;  // ns: "default" where the context names none
  KubeconfigCluster cluster;
  KubeconfigUser user;  // without a name: anonymous
};

// `context` empty: the current one.
absl::StatusOr<KubeconfigTarget> select_context(const Kubeconfig& config, std::string_view context);

}  // namespace paceline::kube

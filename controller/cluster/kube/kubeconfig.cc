#include "controller/cluster/kube/kubeconfig.h"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <exception>
#include <unordered_set>

#include "absl/strings/escaping.h"
#include "base/status.h"

namespace paceline::kube {

namespace {

constexpr std::size_t kMaxEntries = 10'000;  // clusters, users, contexts; items of a list
constexpr std::size_t kMaxNamesInError = 10;

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

std::string resolve(const std::string& file, const std::string& path) {
  if (path.empty() || path.front() == '/') return path;
  return str_cat(folder_of(file), "/", path);
}

std::string in_quotes(std::string_view text) {
  return str_cat("\"", text.substr(0, 200), "\"");
}

// Reads the fields of one map. The first thing that is wrong is kept in `status`, and all later reads return
// nothing.
class Fields {
 public:
  Fields(const YAML::Node& map, std::string where, absl::Status& status)
      : map_(map), where_(std::move(where)), status_(status) {
    if (map_.IsDefined() && !map_.IsNull() && !map_.IsMap()) fail("must be a map of fields");
  }

  void fail(std::string_view problem) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(str_cat(where_, ": ", problem));
  }
  void fail(const char* field, std::string_view problem) { fail(str_cat(field, ": ", problem)); }

  bool has(const char* field) {
    const YAML::Node node = get(field);
    return node.IsDefined() && !node.IsNull();
  }

  std::string text(const char* field) {
    if (!has(field)) return "";
    const YAML::Node node = get(field);
    if (!node.IsScalar()) {
      fail(field, "must be a text");
      return "";
    }
    const std::string& value = node.Scalar();
    if (value.find('\0') != std::string::npos) fail(field, "holds a NUL byte");
    return value;
  }

  // A text that goes into a header: one line, without the blanks around it.
  std::string line(const char* field) {
    std::string value = text(field);
    const auto blank = [](char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; };
    while (!value.empty() && blank(value.back())) value.pop_back();
    value.erase(value.begin(), std::find_if_not(value.begin(), value.end(), blank));
    if (std::any_of(value.begin(), value.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }))
      fail(field, "must be one line without control characters");
    return value;
  }

  bool flag(const char* field) {
    const std::string value = text(field);
    if (value.empty() || value == "false" || value == "False" || value == "FALSE") return false;
    if (value != "true" && value != "True" && value != "TRUE")
      fail(field, str_cat(in_quotes(value), " is neither true nor false"));
    return true;
  }

  std::vector<std::string> texts(const char* field) {
    std::vector<std::string> result;
    for (const YAML::Node& item : items(field)) {
      if (!item.IsScalar()) {
        fail(field, "must be a list of texts");
        break;
      }
      result.push_back(item.Scalar());
    }
    return result;
  }

  std::vector<YAML::Node> items(const char* field) {
    std::vector<YAML::Node> result;
    if (!has(field)) return result;
    const YAML::Node list = get(field);
    if (!list.IsSequence()) {
      fail(field, "must be a list");
      return result;
    }
    if (list.size() > kMaxEntries) {
      fail(field, str_cat("has ", list.size(), " entries; the limit is ", kMaxEntries));
      return result;
    }
    for (const YAML::Node& item : list) result.push_back(item);
    return result;
  }

  Fields map(const char* field) { return Fields(get(field), str_cat(where_, ": ", field), status_); }

  // FIELD-data (base64 of PEM), else FIELD (a path).
  PemSource pem(const char* field, const std::string& file) {
    PemSource source;
    const std::string data_field = str_cat(field, "-data");
    const std::string encoded = text(data_field.c_str());
    if (encoded.empty()) {
      source.path = resolve(file, text(field));
      return source;
    }
    if (!absl::Base64Unescape(encoded, &source.pem) || source.pem.empty()) {
      fail(data_field.c_str(), "is not base64; put the file's bytes through `base64 -w0`");
    } else if (source.pem.find("-----BEGIN ") == std::string::npos) {
      fail(data_field.c_str(), "is base64, but of no PEM file (there is no \"-----BEGIN \" in it)");
    }
    return source;
  }

 private:
  YAML::Node get(const char* field) const {
    if (!status_.ok() || !map_.IsMap()) return YAML::Node(YAML::NodeType::Undefined);
    const YAML::Node node = map_[field];
    return node.IsDefined() ? node : YAML::Node(YAML::NodeType::Undefined);
  }

  const YAML::Node map_;
  std::string where_;
  absl::Status& status_;
};

KubeconfigCluster read_cluster(Fields fields, const std::string& file) {
  KubeconfigCluster cluster;
  cluster.server = fields.line("server");
  cluster.tls_server_name = fields.line("tls-server-name");
  cluster.proxy_url = fields.line("proxy-url");
  cluster.insecure_skip_tls_verify = fields.flag("insecure-skip-tls-verify");
  cluster.certificate_authority = fields.pem("certificate-authority", file);
  if (cluster.insecure_skip_tls_verify && !cluster.certificate_authority.empty())
    fields.fail("insecure-skip-tls-verify", "is true although a certificate authority is given; remove one");
  return cluster;
}

ExecPlugin read_exec(Fields fields, const std::string& file) {
  ExecPlugin plugin;
  plugin.api_version = fields.text("apiVersion");
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    fields.fail("apiVersion", str_cat(in_quotes(plugin.api_version),
                                      " is not known; allowed: client.authentication.k8s.io/v1, "
                                      "client.authentication.k8s.io/v1beta1 (update the plug-in)"));
  }
  plugin.command = fields.text("command");
  if (plugin.command.empty()) fields.fail("command", "is missing; name the plug-in's program");
  // As for a shell: a name without a slash is looked up in PATH, a relative path starts at the file.
  if (plugin.command.find('/') != std::string::npos) plugin.command = resolve(file, plugin.command);
  plugin.args = fields.texts("args");
  plugin.install_hint = fields.text("installHint");
  plugin.provide_cluster_info = fields.flag("provideClusterInfo");
  for (const YAML::Node& item : fields.items("env")) {
    const bool good = item.IsMap() && item["name"].IsDefined() && item["name"].IsScalar() &&
                      !item["name"].Scalar().empty() &&
                      item["name"].Scalar().find('=') == std::string::npos && item["value"].IsDefined() &&
                      item["value"].IsScalar();
    if (!good) {
      fields.fail("env", "each entry needs a name (without =) and a value, both texts");
      break;
    }
    plugin.env.emplace_back(item["name"].Scalar(), item["value"].Scalar());
  }
  const std::string mode = fields.text("interactiveMode");
  if (mode == "Never") {
    plugin.interactive_mode = InteractiveMode::kNever;
  } else if (mode == "Always") {
    plugin.interactive_mode = InteractiveMode::kAlways;
  } else if (mode.empty() && plugin.api_version == "client.authentication.k8s.io/v1") {
    fields.fail("interactiveMode", "is missing, and v1 requires it; allowed: Never, IfAvailable, Always");
  } else if (!mode.empty() && mode != "IfAvailable") {
    fields.fail("interactiveMode",
                str_cat(in_quotes(mode), " is not known; allowed: Never, IfAvailable, Always"));
  }
  return plugin;
}

KubeconfigUser read_user(Fields fields, const std::string& file) {
  KubeconfigUser user;
  user.client_certificate = fields.pem("client-certificate", file);
  user.client_key = fields.pem("client-key", file);
  user.token = fields.line("token");
  user.token_file = resolve(file, fields.text("tokenFile"));
  user.username = fields.line("username");
  user.password = fields.line("password");
  user.impersonate = fields.line("as");
  user.impersonate_uid = fields.line("as-uid");
  user.impersonate_groups = fields.texts("as-groups");
  if (user.client_certificate.empty() != user.client_key.empty()) {
    fields.fail(user.client_key.empty() ? "client-key" : "client-certificate",
                "is missing; a client certificate and its key are given together");
  }
  if (!user.username.empty() && !(user.token.empty() && user.token_file.empty()))
    fields.fail("username", "is given beside a token; remove one of them");
  if (user.impersonate.empty() && !(user.impersonate_groups.empty() && user.impersonate_uid.empty()))
    fields.fail("as", "is missing; as-groups and as-uid are given beside it");
  if (fields.has("as-user-extra"))
    fields.fail("as-user-extra", "is not supported; remove it, or use a user that needs none");
  if (fields.has("auth-provider")) {
    fields.fail("auth-provider",
                "was removed from Kubernetes; use `exec` with the provider's credential plug-in "
                "(gke-gcloud-auth-plugin, kubelogin, kubectl-oidc_login)");
  }
  if (fields.has("exec")) user.exec = read_exec(fields.map("exec"), file);
  return user;
}

// clusters, users, contexts: lists of {name, cluster|user|context}.
template <typename Entry, typename Read>
void read_entries(Fields& top, const char* list, const char* value, const std::string& file,
                  absl::Status& status, std::vector<Entry>& result, Read read) {
  std::size_t index = 0;
  for (const YAML::Node& item : top.items(list)) {
    Fields outer(item, str_cat(file, ": ", list, "[", index++, "]"), status);
    const std::string name = outer.text("name");
    if (name.empty()) outer.fail("name", "is missing; contexts refer to entries by their names");
    const YAML::Node inner = status.ok() ? item[value] : YAML::Node();
    Entry entry = read(Fields(inner.IsDefined() ? inner : YAML::Node(),
                              str_cat(file, ": ", value, " ", in_quotes(name)), status));
    if (!status.ok()) return;
    entry.name = name;
    entry.file = file;
    result.push_back(std::move(entry));
  }
}

absl::StatusOr<Kubeconfig> read_config(const YAML::Node& root, const std::string& path) {
  absl::Status status;
  Kubeconfig config;
  config.files = {path};
  Fields top(root, path, status);
  const std::string kind = top.text("kind");
  if (!kind.empty() && kind != "Config")
    top.fail("kind", str_cat(in_quotes(kind), " is no kubeconfig; allowed: Config"));
  const std::string version = top.text("apiVersion");
  if (!version.empty() && version != "v1")
    top.fail("apiVersion", str_cat(in_quotes(version), " is not known; allowed: v1"));
  config.current_context = top.text("current-context");
  read_entries(top, "clusters", "cluster", path, status, config.clusters,
               [&](Fields fields) { return read_cluster(std::move(fields), path); });
  read_entries(top, "users", "user", path, status, config.users,
               [&](Fields fields) { return read_user(std::move(fields), path); });
  read_entries(top, "contexts", "context", path, status, config.contexts, [](Fields fields) {
    KubeconfigContext context;
    context.cluster = fields.text("cluster");
    context.user = fields.text("user");
    context.ns = fields.text("namespace");
    return context;
  });
  if (!status.ok()) return status;
  return config;
}

template <typename Entry>
void merge_entries(std::vector<Entry>& into, std::vector<Entry> from,
                   std::unordered_set<std::string>& names) {
  for (Entry& entry : from) {
    if (names.insert(entry.name).second) into.push_back(std::move(entry));
  }
}

template <typename Entry>
const Entry* find_entry(const std::vector<Entry>& entries, std::string_view name) {
  const auto found =
      std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

template <typename Entry>
std::string names_of(const std::vector<Entry>& entries) {
  if (entries.empty()) return "there are none";
  std::string result = "there are: ";
  for (std::size_t i = 0; i < entries.size() && i < kMaxNamesInError; ++i)
    result += str_cat(i == 0 ? "" : ", ", entries[i].name);
  if (entries.size() > kMaxNamesInError)
    result += str_cat(" and ", entries.size() - kMaxNamesInError, " more");
  return result;
}

std::string files_of(const Kubeconfig& config) {
  std::string result;
  for (const std::string& file : config.files) result += str_cat(result.empty() ? "" : ", ", file);
  return result.empty() ? "the kubeconfig" : result;
}

}  // namespace

absl::StatusOr<Kubeconfig> parse_kubeconfig(std::string_view text, const std::string& path) {
  if (text.size() > kMaxKubeconfigBytes) {
    return absl::InvalidArgumentError(
        str_cat(path, ": is larger than ", kMaxKubeconfigBytes, " bytes; is this a kubeconfig?"));
  }
  try {
    const YAML::Node root = YAML::Load(std::string(text));
    if (root.IsDefined() && !root.IsNull() && !root.IsMap()) {
      return absl::InvalidArgumentError(str_cat(
          path, ": is no kubeconfig: the outermost value must be a map with clusters, users, contexts"));
    }
    return read_config(root, path);
  } catch (const YAML::Exception& e) {
    const std::string place = e.mark.is_null() ? "" : str_cat(":", e.mark.line + 1, ":", e.mark.column + 1);
    return absl::InvalidArgumentError(str_cat(path, place, ": is neither YAML nor JSON: ", e.msg));
  } catch (const std::exception& e) {
    return absl::InvalidArgumentError(str_cat(path, ": can't be read: ", std::string(e.what())));
  }
}

Kubeconfig merge_kubeconfigs(std::vector<Kubeconfig> configs) {
  Kubeconfig result;
  std::unordered_set<std::string> clusters, users, contexts;
  for (Kubeconfig& config : configs) {
    result.files.insert(result.files.end(), config.files.begin(), config.files.end());
    merge_entries(result.clusters, std::move(config.clusters), clusters);
    merge_entries(result.users, std::move(config.users), users);
    merge_entries(result.contexts, std::move(config.contexts), contexts);
    if (result.current_context.empty()) result.current_context = config.current_context;
  }
  return result;
}

absl::StatusOr<KubeconfigTarget> select_context(const Kubeconfig& config, std::string_view wanted) {
  const std::string name = wanted.empty() ? config.current_context : std::string(wanted);
  if (name.empty()) {
    return absl::InvalidArgumentError(str_cat(files_of(config),
                                              ": no current-context is set; choose one by --context or "
                                              "`kubectl config use-context NAME`; ",
                                              names_of(config.contexts)));
  }
  const KubeconfigContext* context = find_entry(config.contexts, name);
  if (context == nullptr) {
    return absl::NotFoundError(str_cat(files_of(config), ": ", wanted.empty() ? "current-context names " : "",
                                       "context ", in_quotes(name), ", which is not there; ",
                                       names_of(config.contexts)));
  }
  const std::string where = str_cat(context->file, ": context ", in_quotes(name));
  KubeconfigTarget target;
  target.context = name;
  target.ns = context->ns.empty() ? "default" : context->ns;
  const KubeconfigCluster* cluster = find_entry(config.clusters, context->cluster);
  if (cluster == nullptr) {
    return absl::NotFoundError(str_cat(where, ": cluster: ", in_quotes(context->cluster), " is not there; ",
                                       names_of(config.clusters)));
  }
  if (cluster->server.empty()) {
    return absl::InvalidArgumentError(str_cat(cluster->file, ": cluster ", in_quotes(cluster->name),
                                              ": server: is missing; give the API server's address, "
                                              "e.g. https://10.0.0.1:6443"));
  }
  target.cluster = *cluster;
  if (!context->user.empty()) {
    const KubeconfigUser* user = find_entry(config.users, context->user);
    if (user == nullptr) {
      return absl::NotFoundError(
          str_cat(where, ": user: ", in_quotes(context->user), " is not there; ", names_of(config.users)));
    }
    target.user = *user;
  }
  return target;
}

}  // namespace paceline::kube

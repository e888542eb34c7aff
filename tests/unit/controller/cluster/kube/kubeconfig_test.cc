#include "controller/cluster/kube/kubeconfig.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace paceline::kube {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr const char* kGood = R"(
apiVersion: v1
kind: Config
current-context: dev
preferences: {}
clusters:
- name: one
  cluster: {server: "https://10.0.0.1:6443", certificate-authority-data: LS0tLS1CRUdJTiBDRVJU, tls-server-name: api}
- name: two
  cluster: {server: https://two, insecure-skip-tls-verify: true, proxy-url: "socks5://p:1"}
contexts:
- name: dev
  context: {cluster: one, user: cert, namespace: team}
- name: anonymous
  context: {cluster: two}
users:
- name: cert
  user: {client-certificate: pki/me.crt, client-key: /abs/me.key}
- name: plugin
  user:
    as: boss
    as-groups: [a, b]
    exec:
      apiVersion: client.authentication.k8s.io/v1
      command: ./bin/login
      args: [get, --token]
      env: [{name: REGION, value: eu}]
      installHint: install it
      interactiveMode: Never
      provideClusterInfo: true
)";

TEST(KubeconfigTest, ReadsWhatKubectlReads) {
  const auto config = parse_kubeconfig(kGood, "/home/me/.kube/config");
  ASSERT_TRUE(config.ok()) << config.status();
  const auto target = select_context(*config, "");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(target->context, "dev");
  EXPECT_EQ(target->ns, "team");
  EXPECT_EQ(target->cluster.server, "https://10.0.0.1:6443");
  EXPECT_EQ(target->cluster.certificate_authority.pem, "-----BEGIN CERT");
  EXPECT_EQ(target->cluster.tls_server_name, "api");
  EXPECT_EQ(target->user.client_certificate.path, "/home/me/.kube/pki/me.crt") << "relative to the file";
  EXPECT_EQ(target->user.client_key.path, "/abs/me.key");
  const auto anonymous = select_context(*config, "anonymous");
  ASSERT_TRUE(anonymous.ok());
  EXPECT_EQ(anonymous->ns, "default");
  EXPECT_TRUE(anonymous->user.name.empty());
  EXPECT_TRUE(anonymous->cluster.insecure_skip_tls_verify);
  EXPECT_EQ(anonymous->cluster.proxy_url, "socks5://p:1");
  const KubeconfigUser& user = config->users[1];
  ASSERT_TRUE(user.exec.has_value());
  EXPECT_EQ(user.exec->command, "/home/me/.kube/./bin/login");
  EXPECT_THAT(user.exec->args, ElementsAre("get", "--token"));
  EXPECT_EQ(user.exec->env[0], (std::pair<std::string, std::string>("REGION", "eu")));
  EXPECT_EQ(user.exec->interactive_mode, InteractiveMode::kNever);
  EXPECT_TRUE(user.exec->provide_cluster_info);
  EXPECT_EQ(user.impersonate, "boss");
  EXPECT_THAT(user.impersonate_groups, ElementsAre("a", "b"));
}

TEST(KubeconfigTest, JsonIsReadToo) {
  const auto config = parse_kubeconfig(
      R"({"current-context":"c","clusters":[{"name":"k","cluster":{"server":"https://k"}}],
          "contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],
          "users":[{"name":"u","user":{"username":"me","password":"p: #x","token":null}}]})",
      "c.json");
  ASSERT_TRUE(config.ok()) << config.status();
  const auto target = select_context(*config, "c");
  ASSERT_TRUE(target.ok()) << target.status();
  EXPECT_EQ(target->user.password, "p: #x");
}

TEST(KubeconfigTest, TheFirstFileWinsForEachName) {
  const auto read = [](const std::string& path, const std::string& current, const std::string& server,
                       const std::string& extra) {
    return *parse_kubeconfig(
        str_cat("current-context: ", current, "\nclusters: [{name: k, cluster: {server: ", server, extra,
                "}}, {name: only-", path, ", cluster: {server: x}}]\n"),
        path);
  };
  const Kubeconfig merged = merge_kubeconfigs({read("a", "\"\"", "https://a", ""),
                                               read("b", "from-b", "https://b", ", tls-server-name: b"),
                                               read("c", "from-c", "https://c", "")});
  EXPECT_EQ(merged.current_context, "from-b");
  EXPECT_THAT(merged.files, ElementsAre("a", "b", "c"));
  ASSERT_EQ(merged.clusters.size(), 4u);
  EXPECT_EQ(merged.clusters[0].server, "https://a");
  EXPECT_EQ(merged.clusters[0].tls_server_name, "") << "entries are not mixed";
  EXPECT_EQ(merged.clusters[0].file, "a");
  EXPECT_EQ(merged.clusters[3].name, "only-c");
}

struct Bad {
  const char* name;
  const char* text;
  std::vector<const char*> said;
};

class BadKubeconfigTest : public ::testing::TestWithParam<Bad> {};

TEST_P(BadKubeconfigTest, SaysWhereAndWhat) {
  const auto config = parse_kubeconfig(GetParam().text, "/etc/k.yaml");
  ASSERT_FALSE(config.ok());
  EXPECT_EQ(config.status().code(), absl::StatusCode::kInvalidArgument);
  const std::string message(config.status().message());
  EXPECT_THAT(message, HasSubstr("/etc/k.yaml"));
  for (const char* said : GetParam().said) EXPECT_THAT(message, HasSubstr(said));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadKubeconfigTest,
    ::testing::Values(
        Bad{"not_yaml", "clusters: [", {":1:", "neither YAML nor JSON"}},
        Bad{"a_list", "- a", {"outermost value must be a map"}},
        Bad{"a_text", "hello", {"outermost value must be a map"}},
        Bad{"other_kind", "kind: Pod", {"\"Pod\" is no kubeconfig", "Config"}},
        Bad{"other_version", "apiVersion: v2", {"apiVersion", "\"v2\"", "v1"}},
        Bad{"clusters_no_list", "clusters: {}", {"clusters: must be a list"}},
        Bad{"no_name", "clusters: [{cluster: {server: x}}]", {"clusters[0]", "name: is missing"}},
        Bad{"entry_no_map", "users: [5]", {"users[0]", "must be a map"}},
        Bad{"cluster_no_map", "clusters: [{name: a, cluster: [1]}]", {"cluster \"a\"", "must be a map"}},
        Bad{"server_no_text",
            "clusters: [{name: a, cluster: {server: [x]}}]",
            {"cluster \"a\": server: must be a text"}},
        Bad{"no_base64",
            "clusters: [{name: a, cluster: {certificate-authority-data: '%%'}}]",
            {"cluster \"a\"", "certificate-authority-data", "not base64", "base64 -w0"}},
        Bad{"no_pem",
            "users: [{name: u, user: {client-key-data: aGVsbG8=}}]",
            {"user \"u\"", "client-key-data", "no PEM"}},
        Bad{"flag",
            "clusters: [{name: a, cluster: {insecure-skip-tls-verify: maybe}}]",
            {"\"maybe\"", "true nor false"}},
        Bad{"insecure_with_ca",
            "clusters: [{name: a, cluster: {insecure-skip-tls-verify: true, certificate-authority: x}}]",
            {"insecure-skip-tls-verify", "remove one"}},
        Bad{"half_a_pair",
            "users: [{name: u, user: {client-certificate: x}}]",
            {"user \"u\"", "client-key: is missing"}},
        Bad{"two_lines", "users: [{name: u, user: {token: \"a\\nb\"}}]", {"token: must be one line"}},
        Bad{"two_ways", "users: [{name: u, user: {token: a, username: b}}]", {"username", "beside a token"}},
        Bad{"auth_provider",
            "users: [{name: u, user: {auth-provider: {name: gcp}}}]",
            {"user \"u\"", "auth-provider", "exec", "gke-gcloud-auth-plugin"}},
        Bad{"groups_without_user", "users: [{name: u, user: {as-groups: [a]}}]", {"as: is missing"}},
        Bad{"extra",
            "users: [{name: u, user: {as: a, as-user-extra: {x: [y]}}}]",
            {"as-user-extra", "not supported"}},
        Bad{"exec_version",
            "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1alpha1, command: "
            "x}}}]",
            {"user \"u\": exec: apiVersion", "v1alpha1", "v1beta1"}},
        Bad{"exec_command",
            "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1beta1}}}]",
            {"exec: command: is missing"}},
        Bad{"exec_mode",
            "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: x}}}]",
            {"interactiveMode: is missing", "IfAvailable"}},
        Bad{"exec_env",
            "users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1beta1, command: x, "
            "env: [{name: a=b, "
            "value: c}]}}}]",
            {"exec: env"}}),
    [](const auto& info) { return info.param.name; });

TEST(KubeconfigTest, NamesThatLeadNowhereAreToldWithThoseThatAreThere) {
  const auto config = parse_kubeconfig(
      "current-context: gone\n"
      "contexts: [{name: a, context: {cluster: none, user: u}}, {name: b, context: {cluster: k, user: "
      "none}},\n"
      "  {name: c, context: {cluster: empty}}]\n"
      "clusters: [{name: k, cluster: {server: https://k}}, {name: empty}]\n",
      "/k");
  ASSERT_TRUE(config.ok()) << config.status();
  const auto message = [&](const char* context) {
    return std::string(select_context(*config, context).status().message());
  };
  EXPECT_THAT(message(""),
              AllOf(HasSubstr("/k: current-context names context \"gone\""), HasSubstr("a, b, c")));
  EXPECT_THAT(message("x"), AllOf(HasSubstr("context \"x\""), HasSubstr("a, b, c")));
  EXPECT_THAT(message("a"), AllOf(HasSubstr("context \"a\": cluster: \"none\""), HasSubstr("k, empty")));
  EXPECT_THAT(message("b"), AllOf(HasSubstr("context \"b\": user: \"none\""), HasSubstr("there are none")));
  EXPECT_THAT(message("c"), HasSubstr("cluster \"empty\": server: is missing"));
  EXPECT_THAT(std::string(select_context(Kubeconfig{}, "").status().message()),
              HasSubstr("no current-context"));
}

TEST(KubeconfigTest, HostileTextIsAnErrorAndNoCrash) {
  const std::string good = kGood;
  for (std::size_t size = 0; size < good.size(); ++size) (void)parse_kubeconfig(good.substr(0, size), "k");
  for (std::size_t at = 0; at < good.size(); at += 3) {
    for (const char c : {'\0', '{', '"', ':', '\xff', '&'}) {
      std::string text = good;
      text[at] = c;
      const auto config = parse_kubeconfig(text, "k");
      if (config.ok()) (void)select_context(*config, "");
    }
  }
  EXPECT_FALSE(parse_kubeconfig(std::string(100'000, '['), "k").ok());
  EXPECT_FALSE(parse_kubeconfig(std::string(kMaxKubeconfigBytes + 1, ' '), "k").ok());
  std::string many = "clusters:\n";
  for (int i = 0; i <= 10'000; ++i) many += "- {name: a}\n";
  EXPECT_FALSE(parse_kubeconfig(many, "k").ok());
}

}  // namespace
}  // namespace paceline::kube

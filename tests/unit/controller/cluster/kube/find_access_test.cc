#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>

#include "base/file.h"
#include "base/text.h"
#include "controller/cluster/kube/credentials.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temporary_folder.h"

namespace paceline::kube {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

constexpr const char* kPem = "-----BEGIN CERTIFICATE-----\n";

class FindAccessTest : public ::testing::Test {
 protected:
  FindAccessTest() {
    options_.variable = [this](const char* name) -> std::optional<std::string> {
      const auto found = environment_.find(name);
      return found == environment_.end() ? std::nullopt : std::optional(found->second);
    };
    options_.service_account_folder = folder_.path() + "/account";
  }

  std::string write(const std::string& name, const std::string& text) {
    const std::string path = str_cat(folder_.path(), "/", name);
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    EXPECT_TRUE(write_file_atomically(path, text).ok());
    return path;
  }
  std::string write_config(const std::string& name, const std::string& server,
                           const std::string& user = "{}") {
    return write(name, str_cat("current-context: c\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n",
                               "clusters: [{name: k, cluster: {server: ", server,
                               "}}]\nusers: [{name: u, user: ", user, "}]\n"));
  }
  absl::StatusOr<KubeAccess> find() { return find_access(options_, clock_, Logger::none()); }
  std::string server() {
    const auto access = find();
    return access.ok() ? access->endpoint.server : access.status().ToString();
  }
  absl::StatusOr<IdentityPtr> identity() {
    auto access = find();
    if (!access.ok()) return access.status();
    return access->credentials->get(Deadline::after(clock_.now(), std::chrono::minutes(1)), {});
  }

  TemporaryFolder folder_;
  FakeClock clock_;
  std::map<std::string, std::string> environment_;
  AccessOptions options_;
};

TEST_F(FindAccessTest, TheOrderIsKubectls) {
  EXPECT_EQ(find().status().code(), absl::StatusCode::kNotFound);
  write("account/ca.crt", kPem);
  write("account/token", "pod-token\n");
  write("account/namespace", "team\n");
  environment_["KUBERNETES_SERVICE_HOST"] = "10.0.0.1";
  environment_["KUBERNETES_SERVICE_PORT"] = "443";
  EXPECT_EQ(server(), "https://10.0.0.1:443");
  environment_["HOME"] = folder_.path();
  EXPECT_EQ(server(), "https://10.0.0.1:443") << "a home without a kubeconfig changes nothing";
  write_config(".kube/config", "https://home");
  EXPECT_EQ(server(), "https://home");
  const std::string second = write_config("second", "https://second");
  environment_["KUBECONFIG"] =
      str_cat(":", folder_.path(), "/missing:", second, ":", folder_.path(), "/.kube/config");
  EXPECT_EQ(server(), "https://second");
  options_.kubeconfig = write_config("flag", "https://flag");
  EXPECT_EQ(server(), "https://flag");
  options_.kubeconfig = folder_.path() + "/missing";
  EXPECT_THAT(server(), AllOf(HasSubstr("NOT_FOUND"), HasSubstr("/missing")))
      << "what is named must be there";
}

// As people keep them: one file says which context, another has the cluster, a third the user.
TEST_F(FindAccessTest, SeveralFilesAreOneConfiguration) {
  const std::string which = write("which",
                                  "current-context: c\ncontexts: [{name: c, context: "
                                  "{cluster: k, user: u, namespace: team}}]\n");
  write("token", "from-the-third");
  const std::string cluster =
      write("a/cluster", "clusters: [{name: k, cluster: {server: https://second}}]\n");
  const std::string user = write("b/user",
                                 "users: [{name: u, user: {tokenFile: ../token}}]\n"
                                 "clusters: [{name: k, cluster: {server: https://third}}, "
                                 "{name: l, cluster: {server: https://fourth}}]\n"
                                 "contexts: [{name: d, context: {cluster: l, user: u}}]\n");
  environment_["KUBECONFIG"] = str_cat(which, ":", cluster, ":", user);
  EXPECT_EQ(server(), "https://second") << "the first file wins for each name";
  ASSERT_TRUE(identity().ok()) << identity().status();
  EXPECT_THAT((*identity())->headers, UnorderedElementsAre(Pair("Authorization", "Bearer from-the-third")))
      << "relative to its own file";
  EXPECT_EQ(find()->ns, "team");
  options_.context = "d";
  EXPECT_EQ(server(), "https://fourth");
  options_.context = "e";
  EXPECT_THAT(server(), AllOf(HasSubstr("context \"e\""), HasSubstr("c, d")));
  options_.context.clear();
  environment_["KUBECONFIG"] = str_cat(which, ":", user);
  EXPECT_EQ(server(), "https://third");
  environment_["KUBECONFIG"] = which;
  EXPECT_THAT(server(), HasSubstr("cluster: \"k\""));
}

TEST_F(FindAccessTest, InAPodTheServiceAccountIsUsed) {
  environment_["KUBERNETES_SERVICE_HOST"] = "fd00::1";
  environment_["KUBERNETES_SERVICE_PORT"] = "6443";
  EXPECT_THAT(server(), AllOf(HasSubstr("service account"), HasSubstr("ca.crt")));
  write("account/ca.crt", kPem);
  EXPECT_THAT(server(), AllOf(HasSubstr("service account"), HasSubstr("token")));
  write("account/token", "one");
  auto access = find();
  ASSERT_TRUE(access.ok()) << access.status();
  EXPECT_EQ(access->endpoint.server, "https://[fd00::1]:6443");
  EXPECT_EQ(access->endpoint.ca_pem, kPem);
  EXPECT_EQ(access->ns, "default");
  write("account/namespace", "team");
  EXPECT_EQ(find()->ns, "team");
  const Deadline deadline = Deadline::after(clock_.now(), std::chrono::hours(1));
  EXPECT_THAT((*access->credentials->get(deadline, {}))->headers,
              UnorderedElementsAre(Pair("Authorization", "Bearer one")));
  write("account/token", "two");
  clock_.advance(kTokenFileAge);
  EXPECT_THAT((*access->credentials->get(deadline, {}))->headers,
              UnorderedElementsAre(Pair("Authorization", "Bearer two")));
}

TEST_F(FindAccessTest, NowhereTellsWhereItLooked) {
  EXPECT_THAT(server(), HasSubstr("looked for a kubeconfig (neither KUBECONFIG nor HOME is set), and for"));
  environment_["HOME"] = "/nowhere";
  EXPECT_THAT(server(), AllOf(HasSubstr("/nowhere/.kube/config"), HasSubstr("--kubeconfig")));
}

TEST_F(FindAccessTest, EachKindOfUserBecomesItsHeaders) {
  options_.kubeconfig =
      write_config("k", "https://k", "{token: t, as: boss, as-uid: '7', as-groups: [a, b]}");
  EXPECT_THAT((*identity())->headers,
              UnorderedElementsAre(Pair("Authorization", "Bearer t"), Pair("Impersonate-User", "boss"),
                                   Pair("Impersonate-Uid", "7"), Pair("Impersonate-Group", "a"),
                                   Pair("Impersonate-Group", "b")));
  write_config("k", "https://k", "{username: me, password: 'a:b'}");
  EXPECT_THAT((*identity())->headers, UnorderedElementsAre(Pair("Authorization", "Basic bWU6YTpi")));
  write("pki/me.crt", str_cat(kPem, "crt"));
  write("pki/me.key", str_cat(kPem, "key"));
  write_config("k", "https://k", "{client-certificate: pki/me.crt, client-key: pki/me.key}");
  EXPECT_EQ((*identity())->certificate_pem, str_cat(kPem, "crt"));
  EXPECT_EQ((*identity())->key_pem, str_cat(kPem, "key"));
  EXPECT_TRUE((*identity())->headers.empty());
  write("token", "from-file");
  write_config("k", "https://k", "{tokenFile: token}");
  EXPECT_THAT((*identity())->headers, UnorderedElementsAre(Pair("Authorization", "Bearer from-file")));
  write("login",
        "#!/bin/sh\nprintf '{\"apiVersion\":\"client.authentication.k8s.io/v1\",\"kind\":\"ExecCredential\","
        "\"status\":{\"token\":\"from-plugin\"}}'\n");
  std::filesystem::permissions(folder_.path() + "/login", std::filesystem::perms::owner_all);
  write_config(
      "k", "https://k",
      "{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./login, interactiveMode: Never}}");
  EXPECT_THAT((*identity())->headers, UnorderedElementsAre(Pair("Authorization", "Bearer from-plugin")));
}

TEST_F(FindAccessTest, FilesThatAreMissingOrNoPemAreToldWithTheirEntry) {
  options_.kubeconfig = write_config("k", "https://k", "{client-certificate: a.crt, client-key: a.key}");
  EXPECT_THAT(server(),
              AllOf(HasSubstr("user \"u\": client-certificate"), HasSubstr(folder_.path() + "/a.crt")));
  write("a.crt", "hello");
  EXPECT_THAT(server(), AllOf(HasSubstr("user \"u\": client-certificate"), HasSubstr("no PEM file")));
}

}  // namespace
}  // namespace paceline::kube

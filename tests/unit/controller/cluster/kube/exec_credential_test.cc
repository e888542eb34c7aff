#include "controller/cluster/kube/exec_credential.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

namespace paceline::kube {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kV1 = "client.authentication.k8s.io/v1";

TEST(ExecCredentialTest, TheQuestionHoldsTheClusterOnlyWhereItIsAskedFor) {
  ExecPlugin plugin{.api_version = kV1, .command = "x"};
  const Endpoint endpoint{.server = "https://k", .ca_pem = "PEM", .tls_server_name = "api"};
  auto info = nlohmann::json::parse(exec_info(plugin, endpoint, true));
  EXPECT_EQ(info["apiVersion"], kV1);
  EXPECT_EQ(info["kind"], "ExecCredential");
  EXPECT_EQ(info["spec"]["interactive"], true);
  EXPECT_FALSE(info["spec"].contains("cluster"));
  plugin.provide_cluster_info = true;
  info = nlohmann::json::parse(exec_info(plugin, endpoint, false));
  EXPECT_EQ(info["spec"]["interactive"], false);
  EXPECT_EQ(info["spec"]["cluster"]["server"], "https://k");
  EXPECT_EQ(info["spec"]["cluster"]["tls-server-name"], "api");
  EXPECT_EQ(info["spec"]["cluster"]["certificate-authority-data"], "UEVN");
}

std::string answer(const std::string& status) {
  return std::string(R"({"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":)") +
         status + "}";
}

TEST(ExecCredentialTest, ReadsTokensCertificatesAndExpiry) {
  const auto token = parse_exec_credential(
      answer(R"({"token":"abc\n","expirationTimestamp":"2026-01-31T13:00:00+01:00"})"), kV1);
  ASSERT_TRUE(token.ok()) << token.status();
  EXPECT_EQ(token->token, "abc");
  ASSERT_TRUE(token->expires.has_value());
  EXPECT_EQ(format_wall_time(*token->expires), "2026-01-31T12:00:00.000Z");
  const auto pair =
      parse_exec_credential(answer(R"({"clientCertificateData":"C","clientKeyData":"K","token":null})"), kV1);
  ASSERT_TRUE(pair.ok()) << pair.status();
  EXPECT_EQ(pair->certificate_pem, "C");
  EXPECT_EQ(pair->key_pem, "K");
  EXPECT_FALSE(pair->expires.has_value());
  const auto never =
      parse_exec_credential(answer(R"({"token":"a","expirationTimestamp":"9999-01-01T00:00:00Z"})"), kV1);
  ASSERT_TRUE(never.ok());
  EXPECT_FALSE(never->expires.has_value());
  const auto ancient =
      parse_exec_credential(answer(R"({"token":"a","expirationTimestamp":"0001-01-01T00:00:00Z"})"), kV1);
  ASSERT_TRUE(ancient.ok());
  EXPECT_EQ(ancient->expires->time_since_epoch().count(), 0);
}

TEST(ExecCredentialTest, BadAnswerIsNamedWithoutTheSecret) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "empty"},
      {"hello", "no JSON"},
      {"[]", "no JSON object"},
      {R"({"kind":"Pod"})", "another kind"},
      {R"({"kind":5})", "another kind"},
      {R"({"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1beta1"})",
       "another apiVersion"},
      {answer("null"), "no status"},
      {answer("[]"), "no status"},
      {answer("{}"), "neither a token"},
      {answer(R"({"token":5})"), "status.token must be a text"},
      {answer(R"({"token":"secret secret"})"), "status.token holds"},
      {answer(R"({"clientCertificateData":"secret"})"), "only one of"},
      {answer(R"({"token":"secret","expirationTimestamp":"tomorrow"})"), "\"tomorrow\" is no RFC 3339"},
  };
  for (const auto& [text, said] : cases) {
    const auto credential = parse_exec_credential(text, kV1);
    ASSERT_FALSE(credential.ok()) << text;
    EXPECT_THAT(std::string(credential.status().message()), HasSubstr(said)) << text;
    EXPECT_THAT(std::string(credential.status().message()), Not(HasSubstr("secret"))) << text;
  }
}

}  // namespace
}  // namespace paceline::kube

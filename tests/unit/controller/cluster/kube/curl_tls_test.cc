#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "controller/cluster/kube/identity_files.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_certificates.h"
#include "tests/unit/controller/cluster/kube/transport_fixture.h"

namespace paceline::kube {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using namespace std::chrono_literals;

constexpr const char* kLoopback = "IP:127.0.0.1";

void echo_name(const ScriptedRequest& request, ScriptedAnswer& answer) {
  answer.reply(200, str_cat(request.client_name, "|", request.headers.at("host")));
}

class CurlTlsTest : public ::testing::Test {
 protected:
  void expect_refused(const Endpoint& endpoint, const std::string& said, FixedIdentity identity = {}) {
    const auto transport = open_transport(endpoint, std::move(identity));
    for (const auto& response : {transport->call(get("/")), transport->stream(get("/"), pass_over, {})}) {
      EXPECT_EQ(code_of(response), absl::StatusCode::kUnauthenticated) << response.status();
      EXPECT_THAT(std::string(response.status().message()), HasSubstr(said));
    }
  }

  const TestAuthority authority_{"kubernetes"}, other_{"other"}, namesake_{"kubernetes"};
};

TEST_F(CurlTlsTest, TheGivenAuthorityIsTrustedAndConnectionsAreKept) {
  ScriptedHttpServer server(echo_name, {.server = authority_.issue("server", kLoopback)});
  const auto transport = open_transport({.server = server.url(), .ca_pem = authority_.certificate_pem()});
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(answered(transport->call(get("/"))).body, str_cat("|127.0.0.1:", server.port()));
  EXPECT_EQ(server.connections(), 1);
  EXPECT_EQ(server.requests(), 10);
}

TEST_F(CurlTlsTest, SeveralAuthoritiesInOneTextAreAllTrusted) {
  ScriptedHttpServer server(echo_name, {.server = authority_.issue("server", kLoopback)});
  const auto transport = open_transport(
      {.server = server.url(), .ca_pem = other_.certificate_pem() + authority_.certificate_pem()});
  EXPECT_TRUE(transport->call(get("/")).ok());
}

TEST_F(CurlTlsTest, WrongServersAreRefused) {
  const auto good = [&] { return authority_.issue("server", kLoopback); };
  ScriptedHttpServer server(echo_name, {.server = good()});
  expect_refused({.server = server.url(), .ca_pem = other_.certificate_pem()}, "certificate is refused");
  expect_refused({.server = server.url()},
                 "certificate is refused");  // the system's authorities don't know it
  expect_refused(
      {.server = server.url(), .ca_pem = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"},
      "certificate authority can't be used");
  ScriptedHttpServer expired(echo_name, {.server = authority_.issue("server", kLoopback, /*expired=*/true)});
  expect_refused({.server = expired.url(), .ca_pem = authority_.certificate_pem()}, "expired");
  ScriptedHttpServer elsewhere(echo_name,
                               {.server = authority_.issue("server", "IP:10.0.0.1,DNS:api.example")});
  expect_refused({.server = elsewhere.url(), .ca_pem = authority_.certificate_pem()}, "tls-server-name");
  EXPECT_EQ(server.requests() + expired.requests() + elsewhere.requests(), 0) << "nothing was said to them";
}

TEST_F(CurlTlsTest, RenewedFilesHoldForTheNextCall) {
  ScriptedHttpServer server(echo_name, {.server = authority_.issue("server", kLoopback),
                                        .client_ca_pem = authority_.certificate_pem()});
  TemporaryFolder folder;
  FakeClock clock;
  const auto path = [&](const char* name) { return folder.path() + "/" + name; };
  const auto write = [&](const std::string& client_name, const TestAuthority& authority) {
    const KeyPair pair = authority_.issue(client_name, "");
    ASSERT_TRUE(write_file_atomically(path("crt"), pair.certificate_pem).ok());
    ASSERT_TRUE(write_file_atomically(path("key"), pair.key_pem).ok());
    ASSERT_TRUE(write_file_atomically(path("ca"), authority.certificate_pem()).ok());
    clock.advance(kPemFileAge);
  };
  write("first", authority_);
  auto credentials = with_files(fixed_credentials({}),
                                {.certificate = {.pem = {}, .path = path("crt")},
                                 .key = {.pem = {}, .path = path("key")},
                                 .ca = {.pem = {}, .path = path("ca")},
                                 .where = ""},
                                clock, Logger::none());
  ASSERT_TRUE(credentials.ok()) << credentials.status();
  const auto transport = *open_curl_transport({.server = server.url(), .ca_pem = other_.certificate_pem()},
                                              *std::move(credentials), Logger::none());
  const auto who = [&] {
    const auto response = transport->call(get("/"));
    return response.ok() ? response->body.substr(0, response->body.find('|')) : response.status().ToString();
  };
  EXPECT_EQ(who(), "first");
  EXPECT_EQ(who(), "first");
  EXPECT_EQ(server.connections(), 1);
  write("second", authority_);
  EXPECT_EQ(who(), "second");
  EXPECT_EQ(server.connections(), 2);
  write("third", other_);
  EXPECT_THAT(who(), HasSubstr("certificate is refused")) << "the connection of before is not used on";
}

TEST_F(CurlTlsTest, AnotherNameMayBeExpected) {
  ScriptedHttpServer server(echo_name, {.server = authority_.issue("server", "DNS:api.example")});
  Endpoint endpoint{
      .server = server.url(), .ca_pem = authority_.certificate_pem(), .tls_server_name = "api.example"};
  const auto transport = open_transport(endpoint);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(answered(transport->call(get("/"))).body, str_cat("|127.0.0.1:", server.port()))
        << "Host is the server's address";
  }
  EXPECT_EQ(server.connections(), 1);
  endpoint.tls_server_name = "other.example";
  expect_refused(endpoint, "certificate is refused");
  ScriptedHttpServer loopback(echo_name, {.server = authority_.issue("server", kLoopback)});
  endpoint.server = loopback.url();
  expect_refused(endpoint, "certificate is refused");  // the address no longer counts
}

TEST_F(CurlTlsTest, ChecksCanBeSwitchedOff) {
  ScriptedHttpServer server(echo_name, {.server = authority_.issue("server", "DNS:other", /*expired=*/true)});
  EXPECT_TRUE(
      open_transport({.server = server.url(), .insecure_skip_tls_verify = true})->call(get("/")).ok());
}

TEST_F(CurlTlsTest, ClientCertificatesAreShown) {
  ScriptedHttpServer server(echo_name, {.server = authority_.issue("server", kLoopback),
                                        .client_ca_pem = authority_.certificate_pem()});
  const Endpoint endpoint{.server = server.url(), .ca_pem = authority_.certificate_pem()};
  const auto me = authority_.issue("me", "");
  const auto mine = open_transport(endpoint, {.certificate_pem = me.certificate_pem, .key_pem = me.key_pem});
  EXPECT_THAT(answered(mine->call(get("/"))).body, HasSubstr("me|"));
  expect_refused(endpoint, "client-certificate");
  const auto stranger = other_.issue("stranger", "");
  for (const auto& pair : {stranger, namesake_.issue("me", ""), authority_.issue("me", "", /*expired=*/true)})
    expect_refused(endpoint, "client-certificate",
                   {.certificate_pem = pair.certificate_pem, .key_pem = pair.key_pem});
  expect_refused(endpoint, "client certificate can't be used",
                 {.certificate_pem = me.certificate_pem, .key_pem = stranger.key_pem});
  expect_refused(endpoint, "client certificate can't be used", {.certificate_pem = "x", .key_pem = "y"});
  EXPECT_EQ(server.requests(), 1);
}

TEST_F(CurlTlsTest, APlainServerIsUnavailable) {
  ScriptedHttpServer server(echo_name);
  const std::string url = str_cat("https://127.0.0.1:", server.port());
  const auto response = open_transport({.server = url})->call(get("/", 100ms));
  EXPECT_THAT(code_of(response), AnyOf(absl::StatusCode::kUnavailable, absl::StatusCode::kDeadlineExceeded))
      << response.status();
}

TEST_F(CurlTlsTest, AServerThatDiesUnderManyCallsIsAnErrorAndFoundAgain) {
  ScriptedHttpServer server(echo_name, {.server = authority_.issue("server", kLoopback)});
  const auto transport = open_transport({.server = server.url(), .ca_pem = authority_.certificate_pem()});
  std::atomic<bool> ending{false};
  std::atomic<int> good{0};
  std::vector<std::jthread> callers;
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&] {
      while (!ending) {
        const auto response = transport->call(
            {.method = Method::kPost, .path = "/", .content_type = "a/b", .body = std::string(100'000, 'x')});
        good += response.ok();
        if (!response.ok()) {
          EXPECT_EQ(code_of(response), absl::StatusCode::kUnavailable) << response.status();
        }
      }
    });
  }
  for (int round = 0; round < 3; ++round) {
    for (const int before = good; good < before + 20;) std::this_thread::yield();
    server.stop();
    server.start();
  }
  ending = true;
  callers.clear();
  EXPECT_TRUE(transport->call(get("/")).ok());
}

}  // namespace
}  // namespace paceline::kube

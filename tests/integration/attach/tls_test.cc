// A member and a coordinator that talk TLS, over real gRPC.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "controller/certificates/authority.h"
#include "controller/coordinator/server.h"
#include "runtime/member/membership.h"
#include "tests/support/temporary_folder.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;
using certificates::KeyPair;

constexpr Duration kTlsLimit = 20s;  // only a broken test waits so long
constexpr char kSecretOfJob[] = "the token of the job";

class TlsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    authority_ = *certificates::make_authority("paceline authority", clock_.wall_now(), 1h);
    coordinator::ServerOptions options;
    options.certificate_file = folder_.path() + "/tls.crt";
    options.key_file = folder_.path() + "/tls.key";
    auto server = coordinator::Server::start(options, clock_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    coordinator::JobConfig config;
    config.core.job = "default/digits";
    config.core.training.set_seed(42);
    config.core.link_key = std::string(32, 'k');
    config.core.roles = {{Role::kWorker, 3}};
    config.token = kSecretOfJob;
    auto handle = server_->add_job(config);
    ASSERT_TRUE(handle.ok()) << handle.status();
    handle_ = *std::move(handle);
  }

  void give_certificate(const KeyPair& authority, const std::string& name) {
    const auto pair = certificates::issue(authority, {str_cat("DNS:", name)}, clock_.wall_now(), 1h);
    ASSERT_TRUE(pair.ok()) << pair.status();
    ASSERT_TRUE(write_file_atomically(folder_.path() + "/tls.key", pair->key_pem).ok());
    ASSERT_TRUE(write_file_atomically(folder_.path() + "/tls.crt", pair->certificate_pem).ok());
  }

  absl::Status attach(const std::string& authority, Duration limit) {
    member::Environment environment;
    environment.coordinator = server_->address();
    environment.job = "default/digits";
    environment.index = static_cast<int>(members_.size());
    environment.pod = environment.pod_uid = environment.name();
    environment.token = kSecretOfJob;
    environment.authority = authority;
    member::Presence presence;
    presence.host_id = "host";
    presence.tcp = {"127.0.0.1:1"};
    auto member =
        member::Membership::attach(environment, presence, {}, clock_, Deadline::after(clock_.now(), limit));
    if (member.ok()) members_.push_back(*std::move(member));
    return member.status();
  }

  SystemClock clock_;
  TemporaryFolder folder_;
  KeyPair authority_;
  std::unique_ptr<coordinator::Server> server_;
  std::shared_ptr<coordinator::Job> handle_;
  std::vector<std::unique_ptr<member::Membership>> members_;
};

TEST_F(TlsTest, MembersThatTrustTheAuthorityGetIn) {
  give_certificate(authority_, "paceline-coordinator");
  const absl::Status attached = attach(authority_.certificate_pem, kTlsLimit);
  EXPECT_TRUE(attached.ok()) << attached;
}

TEST_F(TlsTest, ACertificateOfAnotherAuthorityIsNotTaken) {
  const KeyPair other = *certificates::make_authority("paceline authority", clock_.wall_now(), 1h);
  give_certificate(other, "paceline-coordinator");
  ASSERT_TRUE(attach(other.certificate_pem, kTlsLimit).ok());  // the server has it by now
  EXPECT_FALSE(attach(authority_.certificate_pem, 1s).ok());
}

TEST_F(TlsTest, ACertificateForAnotherNameIsNotTaken) {
  give_certificate(authority_, "another");
  EXPECT_FALSE(attach(authority_.certificate_pem, 3s).ok());
}

TEST_F(TlsTest, MembersWithoutTlsDoNotGetIn) {
  give_certificate(authority_, "paceline-coordinator");
  ASSERT_TRUE(attach(authority_.certificate_pem, kTlsLimit).ok());
  EXPECT_FALSE(attach("", 1s).ok());
}

TEST_F(TlsTest, ARenewedCertificateIsTakenWithoutARestart) {
  const KeyPair other = *certificates::make_authority("paceline authority", clock_.wall_now(), 1h);
  give_certificate(other, "paceline-coordinator");
  ASSERT_TRUE(attach(other.certificate_pem, kTlsLimit).ok());
  give_certificate(authority_, "paceline-coordinator");
  const absl::Status attached = attach(authority_.certificate_pem, kTlsLimit);
  EXPECT_TRUE(attached.ok()) << attached;
}

}  // namespace
}  // namespace paceline

#include "controller/web/server_certificate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>

#include "base/guarded.h"
#include "base/text.h"
#include "controller/web/http_server.h"
#include "tests/support/counting_clock.h"
#include "tests/support/fake_clock.h"
#include "tests/support/http_reader.h"
#include "tests/support/https_certificate.h"
#include "tests/support/temporary_folder.h"

namespace paceline::web {
namespace {

using ::testing::EndsWith;

constexpr char kRequest[] = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";

class ServerCertificateTest : public ::testing::Test {
 protected:
  std::unique_ptr<HttpServer> serve(TlsFiles files) {
    auto server = HttpServer::start("127.0.0.1:0",
                                    {{"/healthz",
                                      [] {
                                        return HttpAnswer{200, "ok\n"};
                                      }}},
                                    clock_, files);
    EXPECT_TRUE(server.ok()) << server.status();
    return *std::move(server);
  }

  const HttpsCertificate certificate_;
  const TestAuthority other_{"another"};
  FakeClock clock_;
};

TEST_F(ServerCertificateTest, PlainRequestsGetNoAnswer) {
  const auto server = serve(certificate_.files());
  HttpReader plain(server->port());
  plain.send(kRequest);
  EXPECT_EQ(plain.rest().find("HTTP"), std::string::npos);
  HttpReader trusting(server->port(), certificate_.authority());
  trusting.send(kRequest);
  EXPECT_THAT(trusting.rest(), EndsWith("ok\n"));
  EXPECT_FALSE(HttpReader(server->port(), other_.certificate_pem()).trusts());
}

TEST_F(ServerCertificateTest, RenewedOnesCountAtOnceAndEndNoConnection) {
  const auto server = serve(certificate_.files());
  HttpReader before(server->port(), certificate_.authority());
  ASSERT_TRUE(before.trusts());
  certificate_.renew(other_);
  HttpReader after(server->port(), other_.certificate_pem());
  EXPECT_TRUE(after.trusts());
  EXPECT_FALSE(HttpReader(server->port(), certificate_.authority()).trusts());
  before.send(kRequest);
  EXPECT_THAT(before.rest(), EndsWith("ok\n"));
}

TEST_F(ServerCertificateTest, HalfARenewalLeavesThePairBefore) {
  const auto server = serve(certificate_.files());
  ASSERT_TRUE(HttpReader(server->port(), certificate_.authority()).trusts());
  const KeyPair next = other_.issue("localhost", "DNS:localhost");
  HttpsCertificate::write(certificate_.files().key, next.key_pem);
  EXPECT_TRUE(HttpReader(server->port(), certificate_.authority()).trusts());
  HttpsCertificate::write(certificate_.files().certificate, "nonsense");
  EXPECT_TRUE(HttpReader(server->port(), certificate_.authority()).trusts());
  HttpsCertificate::write(certificate_.files().certificate, next.certificate_pem);
  EXPECT_TRUE(HttpReader(server->port(), other_.certificate_pem()).trusts());
}

TEST_F(ServerCertificateTest, PairThatIsNotTakenIsToldOnce) {
  const TemporaryFolder folder;
  Guarded<std::vector<std::string>> told;
  const TlsFiles own{folder.path() + "/tls.crt", folder.path() + "/tls.key",
                     [&](const std::string& why) { told.lock()->push_back(why); }};
  const KeyPair pair = other_.issue("localhost", "DNS:localhost");
  HttpsCertificate::write(own.certificate, pair.certificate_pem);
  HttpsCertificate::write(own.key, other_.issue("localhost", "DNS:localhost").key_pem);
  const auto server = serve(own);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(HttpReader(server->port(), other_.certificate_pem()).trusts());
  EXPECT_EQ(told.lock()->size(), 1U);
  HttpsCertificate::write(own.key, pair.key_pem);
  EXPECT_TRUE(HttpReader(server->port(), other_.certificate_pem()).trusts());
  EXPECT_EQ(told.lock()->size(), 1U);
}

TEST_F(ServerCertificateTest, HalfAHandshakeIsNoReasonToSpin) {
  constexpr int kWaitMs = 500;
  const CountingClock clock;
  const auto server = HttpServer::start("127.0.0.1:0", {}, clock, certificate_.files());
  ASSERT_TRUE(server.ok()) << server.status();
  const HttpReader silent((*server)->port());
  HttpReader half((*server)->port());
  half.send(std::string("\x16\x03\x01\x02\x00\x01", 6));  // a record of 512 bytes, of which one is here
  const int before = clock.count();
  const TimePoint began = clock.now();
  pollfd answer{half.fd(), POLLIN, 0};
  ASSERT_EQ(::poll(&answer, 1, kWaitMs), 0);
  // A busy machine may let this thread wait for longer.
  const auto waited = std::chrono::duration_cast<std::chrono::milliseconds>(clock.now() - began).count();
  EXPECT_LE(clock.count() - before, waited / 10 + 8);
  EXPECT_FALSE(HttpReader((*server)->port(), other_.certificate_pem()).trusts()) << "others get in meanwhile";
  HttpReader whole((*server)->port(), certificate_.authority());
  whole.send(kRequest);
  EXPECT_NE(whole.rest().find("HTTP/1.1 404"), std::string::npos);
}

TEST_F(ServerCertificateTest, HandshakesFailBeforeTheFilesAreThere) {
  const TlsFiles elsewhere{certificate_.files().certificate + ".later", certificate_.files().key + ".later"};
  const auto server = serve(elsewhere);
  EXPECT_FALSE(HttpReader(server->port(), certificate_.authority()).trusts());
  const KeyPair pair = other_.issue("localhost", "DNS:localhost");
  HttpsCertificate::write(elsewhere.certificate, pair.certificate_pem);
  HttpsCertificate::write(elsewhere.key, pair.key_pem);
  EXPECT_TRUE(HttpReader(server->port(), other_.certificate_pem()).trusts());
}

}  // namespace
}  // namespace paceline::web

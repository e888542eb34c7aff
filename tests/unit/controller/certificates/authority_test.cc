#include "controller/certificates/authority.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

namespace paceline::certificates {
namespace {

using namespace std::chrono_literals;
using ::testing::Not;
using ::testing::StartsWith;

const WallTime kNow(std::chrono::seconds(1'800'000'000));

X509* read(const std::string& pem) {
  BIO* const bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  X509* const certificate = PEM_read_bio_X509(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  return certificate;
}

// OpenSSL's verdict for a TLS client that trusts `authority`.
int verify(const std::string& pem, const std::string& authority, const char* host, WallTime at) {
  X509_STORE* const store = X509_STORE_new();
  X509* const root = read(authority);
  X509* const certificate = read(pem);
  X509_STORE_add_cert(store, root);
  X509_STORE_CTX* const context = X509_STORE_CTX_new();
  X509_STORE_CTX_init(context, store, certificate, nullptr);
  X509_VERIFY_PARAM* const parameters = X509_STORE_CTX_get0_param(context);
  X509_VERIFY_PARAM_set1_host(parameters, host, 0);
  X509_VERIFY_PARAM_set_purpose(parameters, X509_PURPOSE_SSL_SERVER);
  X509_VERIFY_PARAM_set_time(parameters, at.time_since_epoch() / 1s);
  X509_verify_cert(context);
  const int error = X509_STORE_CTX_get_error(context);
  X509_STORE_CTX_free(context);
  X509_free(certificate);
  X509_free(root);
  X509_STORE_free(store);
  return error;
}

TEST(AuthorityTest, HostsOfAddressesAreAlternativeNames) {
  EXPECT_EQ(alternative_name_of("paceline.paceline-system.svc:7070"), "DNS:paceline.paceline-system.svc");
  EXPECT_EQ(alternative_name_of("10.0.0.1:7070"), "IP:10.0.0.1");
  EXPECT_EQ(alternative_name_of("[fd00::1]:7070"), "IP:fd00::1");
  EXPECT_EQ(alternative_name_of(""), "");
  EXPECT_EQ(alternative_name_of(":7070"), "");
}

TEST(AuthorityTest, ClientsTrustItsCertificates) {
  const auto authority = make_authority("paceline authority", kNow, 1000h);
  ASSERT_TRUE(authority.ok()) << authority.status();
  const auto pair = issue(*authority, {"DNS:paceline-coordinator", "IP:127.0.0.1"}, kNow, 100h);
  ASSERT_TRUE(pair.ok()) << pair.status();
  EXPECT_THAT(pair->key_pem, StartsWith("-----BEGIN PRIVATE KEY-----"));
  const auto& [leaf, key] = *pair;
  const std::string& root = authority->certificate_pem;
  EXPECT_EQ(verify(leaf, root, "paceline-coordinator", kNow), X509_V_OK);
  EXPECT_EQ(verify(leaf, root, "paceline-coordinator", kNow - 30min), X509_V_OK);
  EXPECT_EQ(verify(leaf, root, "another", kNow), X509_V_ERR_HOSTNAME_MISMATCH);
  EXPECT_EQ(verify(leaf, root, "paceline-coordinator", kNow + 101h), X509_V_ERR_CERT_HAS_EXPIRED);
  const auto other = make_authority("paceline authority", kNow, 1000h);
  EXPECT_NE(verify(leaf, other->certificate_pem, "paceline-coordinator", kNow), X509_V_OK);
  EXPECT_EQ(expiry_of(leaf).value_or(WallTime()), kNow + 100h);
}

TEST(AuthorityTest, ACertificateOfItSignsNothing) {
  const auto authority = make_authority("a", kNow, 1000h);
  const auto pair = issue(*authority, {"DNS:a"}, kNow, 100h);
  ASSERT_TRUE(pair.ok());
  EXPECT_FALSE(issue(*pair, {"DNS:b"}, kNow, 100h).ok());
}

TEST(AuthorityTest, NonsenseIsRefused) {
  const auto authority = make_authority("a", kNow, 1000h);
  const auto other = make_authority("b", kNow, 1000h);
  EXPECT_TRUE(absl::IsInvalidArgument(issue({"x", "y"}, {"DNS:a"}, kNow, 1h).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(
      issue({authority->certificate_pem, other->key_pem}, {"DNS:a"}, kNow, 1h).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(issue(*authority, {}, kNow, 1h).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(issue(*authority, {"IP:nowhere"}, kNow, 1h).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(expiry_of("").status()));
  EXPECT_THAT(issue(*authority, {"DNS:a"}, kNow, 1h)->certificate_pem,
              Not(issue(*authority, {"DNS:a"}, kNow, 1h)->certificate_pem));
}

}  // namespace
}  // namespace paceline::certificates

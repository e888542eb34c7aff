#include "tests/support/test_certificates.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <atomic>

#include "base/check.h"

namespace paceline {

namespace {

constexpr long kHour = 3600;

struct Free {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
};
using Key = std::unique_ptr<EVP_PKEY, Free>;
using Certificate = std::unique_ptr<X509, Free>;

Key make_key() {
  Key key(EVP_EC_gen("P-256"));
  PL_CHECK(key != nullptr, "OpenSSL makes a key");
  return key;
}

template <typename Write>
std::string to_pem(Write write) {
  const std::unique_ptr<BIO, Free> bio(BIO_new(BIO_s_mem()));
  PL_CHECK(bio != nullptr && write(bio.get()) == 1, "OpenSSL writes PEM");
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return std::string(data, static_cast<std::size_t>(size));
}

std::string pem_of(X509* certificate) {
  return to_pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate); });
}

void extend(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const std::unique_ptr<X509_EXTENSION, Free> extension(
      X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  PL_CHECK(extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1, "a valid extension");
}

// `issuer` null: signs itself.
Certificate make_certificate(const std::string& common_name, EVP_PKEY* key, X509* issuer, bool expired) {
  static std::atomic<long> serial{0};
  Certificate certificate(X509_new());
  X509* x = certificate.get();
  X509_set_version(x, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(x), -48 * kHour);
  X509_gmtime_adj(X509_getm_notAfter(x), expired ? -kHour : 48 * kHour);
  X509_set_pubkey(x, key);
  X509_NAME* name = X509_get_subject_name(x);
  X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC,
                             reinterpret_cast<const unsigned char*>(common_name.c_str()), -1, -1, 0);
  X509_set_issuer_name(x, issuer == nullptr ? name : X509_get_subject_name(issuer));
  if (issuer == nullptr) {
    extend(x, x, NID_basic_constraints, "critical,CA:TRUE");
    extend(x, x, NID_subject_key_identifier, "hash");
  }
  return certificate;
}

void sign(X509* certificate, EVP_PKEY* key) {
  PL_CHECK(X509_sign(certificate, key, EVP_sha256()) != 0, "OpenSSL signs");
}

}  // namespace

struct TestAuthority::Impl {
  Key key;
  Certificate certificate;
  std::string pem;
};

TestAuthority::TestAuthority(const std::string& name) : impl_(std::make_unique<Impl>()) {
  impl_->key = make_key();
  impl_->certificate = make_certificate(name, impl_->key.get(), nullptr, false);
  sign(impl_->certificate.get(), impl_->key.get());
  impl_->pem = pem_of(impl_->certificate.get());
}

TestAuthority::~TestAuthority() = default;

const std::string& TestAuthority::certificate_pem() const {
  return impl_->pem;
}

KeyPair TestAuthority::issue(const std::string& common_name, const std::string& names, bool expired) const {
  const Key key = make_key();
  const Certificate certificate = make_certificate(common_name, key.get(), impl_->certificate.get(), expired);
  if (!names.empty()) extend(certificate.get(), impl_->certificate.get(), NID_subject_alt_name, names);
  sign(certificate.get(), impl_->key.get());
  return {pem_of(certificate.get()), to_pem([&](BIO* bio) {
            return PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

}  // namespace paceline

#include "controller/certificates/authority.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <ctime>
#include <memory>

#include "base/status.h"
#include "base/text.h"

namespace paceline::certificates {

namespace {

constexpr Duration kSkew = std::chrono::hours(1);
constexpr int kSerialBits = 127;  // positive, and at most 20 bytes

struct Free {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(BIGNUM* number) const { BN_free(number); }
  void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

std::string openssl_error() {
  char text[256] = "unknown";
  const unsigned long error = ERR_get_error();
  if (error != 0) ERR_error_string_n(error, text, sizeof(text));
  ERR_clear_error();
  return text;
}

absl::Status failed(const char* what) {
  return absl::InternalError(str_cat(what, ": ", openssl_error()));
}

std::string text_in(BIO* bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio, &data);
  return {data, static_cast<std::size_t>(size)};
}

absl::StatusOr<KeyPair> pem_of(X509* certificate, EVP_PKEY* key) {
  const Owned<BIO> first(BIO_new(BIO_s_mem())), second(BIO_new(BIO_s_mem()));
  if (first == nullptr || second == nullptr || PEM_write_bio_X509(first.get(), certificate) != 1 ||
      PEM_write_bio_PrivateKey(second.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return failed("a certificate can't be written");
  return KeyPair{text_in(first.get()), text_in(second.get())};
}

Owned<BIO> reader(const std::string& pem) {
  return Owned<BIO>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

Owned<X509> read_certificate(const std::string& pem) {
  Owned<X509> certificate(PEM_read_bio_X509(reader(pem).get(), nullptr, nullptr, nullptr));
  ERR_clear_error();
  return certificate;
}

Owned<EVP_PKEY> read_key(const std::string& pem) {
  // A key that asks for a passphrase gets none.
  const auto no_passphrase = [](char*, int, int, void*) { return -1; };
  Owned<EVP_PKEY> key(PEM_read_bio_PrivateKey(reader(pem).get(), nullptr, no_passphrase, nullptr));
  ERR_clear_error();
  return key;
}

bool extend(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  const Owned<X509_EXTENSION> extension(X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str()));
  return extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1;
}

std::time_t seconds_of(WallTime time) {
  return std::chrono::system_clock::to_time_t(
      std::chrono::time_point_cast<std::chrono::system_clock::duration>(time));
}

// `issuer` null: it is its own.
absl::StatusOr<Owned<X509>> draft(const std::string& common_name, EVP_PKEY* key, X509* issuer, WallTime now,
                                  Duration valid) {
  Owned<X509> certificate(X509_new());
  const Owned<BIGNUM> serial(BN_new());
  X509* const x = certificate.get();
  if (x == nullptr || serial == nullptr ||
      BN_rand(serial.get(), kSerialBits, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) != 1)
    return failed("a certificate can't be made");
  X509_NAME* const name = X509_get_subject_name(x);
  const bool made = X509_set_version(x, X509_VERSION_3) == 1 &&
                    BN_to_ASN1_INTEGER(serial.get(), X509_get_serialNumber(x)) != nullptr &&
                    ASN1_TIME_set(X509_getm_notBefore(x), seconds_of(now - kSkew)) != nullptr &&
                    ASN1_TIME_set(X509_getm_notAfter(x), seconds_of(now + valid)) != nullptr &&
                    X509_set_pubkey(x, key) == 1 &&
                    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                               reinterpret_cast<const unsigned char*>(common_name.c_str()),
                                               -1, -1, 0) == 1 &&
                    X509_set_issuer_name(x, issuer == nullptr ? name : X509_get_subject_name(issuer)) == 1;
  if (!made) return failed("a certificate can't be made");
  return certificate;
}

}  // namespace

absl::StatusOr<KeyPair> make_authority(const std::string& common_name, WallTime now, Duration valid) {
  const Owned<EVP_PKEY> key(EVP_EC_gen("P-256"));
  if (key == nullptr) return failed("a key can't be made");
  PL_ASSIGN_OR_RETURN(const Owned<X509> certificate, draft(common_name, key.get(), nullptr, now, valid));
  X509* const x = certificate.get();
  const bool signs = extend(x, x, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
                     extend(x, x, NID_key_usage, "critical,keyCertSign,cRLSign") &&
                     extend(x, x, NID_subject_key_identifier, "hash") &&
                     X509_sign(x, key.get(), EVP_sha256()) != 0;
  if (!signs) return failed("a certificate can't be signed");
  return pem_of(x, key.get());
}

absl::StatusOr<KeyPair> issue(const KeyPair& authority, const std::vector<std::string>& names, WallTime now,
                              Duration valid) {
  const Owned<X509> issuer = read_certificate(authority.certificate_pem);
  const Owned<EVP_PKEY> issuer_key = read_key(authority.key_pem);
  if (issuer == nullptr || issuer_key == nullptr ||
      X509_check_private_key(issuer.get(), issuer_key.get()) != 1)
    return absl::InvalidArgumentError(
        "the authority's certificate and key are not PEM, or not of each other");
  if (names.empty()) return absl::InvalidArgumentError("a server's certificate needs a name");
  const Owned<EVP_PKEY> key(EVP_EC_gen("P-256"));
  if (key == nullptr) return failed("a key can't be made");
  PL_ASSIGN_OR_RETURN(const Owned<X509> certificate, draft("paceline", key.get(), issuer.get(), now, valid));
  std::string all;
  for (const std::string& name : names) all += str_cat(all.empty() ? "" : ",", name);
  X509* const x = certificate.get();
  if (!extend(x, issuer.get(), NID_subject_alt_name, all))
    return absl::InvalidArgumentError(str_cat("no names of a server: ", all, ": ", openssl_error()));
  const bool is_signed = extend(x, issuer.get(), NID_basic_constraints, "critical,CA:FALSE") &&
                         extend(x, issuer.get(), NID_ext_key_usage, "serverAuth") &&
                         extend(x, issuer.get(), NID_authority_key_identifier, "keyid") &&
                         X509_sign(x, issuer_key.get(), EVP_sha256()) != 0;
  if (!is_signed) return failed("a certificate can't be signed");
  return pem_of(x, key.get());
}

std::string alternative_name_of(std::string_view address) {
  std::string_view host = address.substr(0, address.rfind(':'));
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.empty()) return "";
  const bool is_name = host.find_first_not_of("0123456789.") != std::string_view::npos &&
                       host.find(':') == std::string_view::npos;
  return str_cat(is_name ? "DNS:" : "IP:", host);
}

absl::StatusOr<WallTime> expiry_of(const std::string& certificate_pem) {
  const Owned<X509> certificate = read_certificate(certificate_pem);
  std::tm time{};
  if (certificate == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(certificate.get()), &time) != 1)
    return absl::InvalidArgumentError("there is no certificate in PEM");
  return WallTime(std::chrono::seconds(::timegm(&time)));
}

}  // namespace paceline::certificates

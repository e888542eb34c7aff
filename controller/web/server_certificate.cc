#include "controller/web/server_certificate.h"

#include <cstddef>
#include <memory>
#include <type_traits>

#include "base/file.h"
#include "base/text.h"

namespace paceline::web {

namespace {

constexpr std::size_t kMostPemBytes = 64 << 10;
constexpr unsigned kMostCertificates = 8;  // of a chain

gnutls_datum_t datum(const std::string& text) {
  // GnuTLS reads it, though its type says otherwise.
  return {reinterpret_cast<unsigned char*>(const_cast<char*>(text.data())),
          static_cast<unsigned>(text.size())};
}

// GnuTLS compares the two keys when it takes a pair into credentials. Returns its error, 0 or more: none.
int try_pair(const std::string& certificate, const std::string& key) {
  gnutls_certificate_credentials_t credentials = nullptr;
  if (const int made = gnutls_certificate_allocate_credentials(&credentials); made != GNUTLS_E_SUCCESS)
    return made;
  const gnutls_datum_t first = datum(certificate), second = datum(key);
  const int taken = gnutls_certificate_set_x509_key_mem(credentials, &first, &second, GNUTLS_X509_FMT_PEM);
  gnutls_certificate_free_credentials(credentials);
  return taken;
}

struct FreePrivateKey {
  void operator()(gnutls_privkey_t key) const { gnutls_privkey_deinit(key); }
};
using PrivateKey = std::unique_ptr<std::remove_pointer_t<gnutls_privkey_t>, FreePrivateKey>;

PrivateKey read_key(const std::string& pem) {
  gnutls_privkey_t raw = nullptr;
  if (gnutls_privkey_init(&raw) != GNUTLS_E_SUCCESS) return nullptr;
  PrivateKey key(raw);
  const gnutls_datum_t text = datum(pem);
  const int read = gnutls_privkey_import_x509_raw(raw, &text, GNUTLS_X509_FMT_PEM, nullptr, 0);
  return read == GNUTLS_E_SUCCESS ? std::move(key) : nullptr;
}

struct FreeByGnutls {
  void operator()(gnutls_pcert_st* certificates) const { gnutls_free(certificates); }
};

}  // namespace

void ServerCertificate::look() {
  auto certificate = read_file(files_.certificate, kMostPemBytes);
  auto key = read_file(files_.key, kMostPemBytes);
  if (!certificate.ok() || !key.ok()) return;
  Pair newest{*std::move(certificate), *std::move(key)};
  if (newest == seen_) return;
  seen_ = std::move(newest);
  const int taken = try_pair(seen_.certificate, seen_.key);
  if (taken >= 0) {
    good_ = seen_;
  } else if (files_.on_refused) {
    files_.on_refused(str_cat("the certificate ", files_.certificate, " with the key ", files_.key,
                              " is not taken: ", gnutls_strerror(taken), " (GnuTLS)",
                              good_.key.empty() ? "; nobody gets in" : "; the pair before them counts"));
  }
}

bool ServerCertificate::retrieve(gnutls_pcert_st** certificates, unsigned* count, gnutls_privkey_t* key,
                                 unsigned* flags) {
  look();
  PrivateKey own = read_key(good_.key);
  std::unique_ptr<gnutls_pcert_st, FreeByGnutls> room(
      static_cast<gnutls_pcert_st*>(gnutls_malloc(kMostCertificates * sizeof(gnutls_pcert_st))));
  if (own == nullptr || room == nullptr) return false;
  const gnutls_datum_t text = datum(good_.certificate);
  unsigned size = kMostCertificates;
  if (gnutls_pcert_list_import_x509_raw(room.get(), &size, &text, GNUTLS_X509_FMT_PEM,
                                        GNUTLS_X509_CRT_LIST_IMPORT_FAIL_IF_EXCEED) != GNUTLS_E_SUCCESS)
    return false;
  *certificates = room.release();
  *count = size;
  *key = own.release();
  *flags |= GNUTLS_CERT_RETR_DEINIT_ALL;
  return true;
}

}  // namespace paceline::web

#pragma once

// The certificate of an HTTPS server, for GnuTLS, which libmicrohttpd speaks TLS by: asked for at each
// handshake, so that a renewed one counts from the next connection on, and no connection ends for it. One
// thread's.

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>

#include <functional>
#include <string>
#include <utility>

namespace paceline::web {

// PEM, the certificate with its chain. Files that change are read again.
struct TlsFiles {
  std::string certificate, key;  // paths; empty: without TLS
  // Told once of each pair that is not taken, by the server's thread: the files, and why.
  std::function<void(const std::string& why)> on_refused = nullptr;
};

class ServerCertificate {
 public:
  explicit ServerCertificate(TlsFiles files) : files_(std::move(files)) {}
  bool is_given() const { return !files_.certificate.empty(); }

  // Gives what a gnutls_certificate_retrieve_function3 has to; GnuTLS owns it then. It is the files' own pair
  // where the two belong together; else, as in the middle of a renewal, the last that did. False: there was
  // none yet.
  bool retrieve(gnutls_pcert_st** certificates, unsigned* count, gnutls_privkey_t* key, unsigned* flags);

 private:
  struct Pair {
    std::string certificate, key;
    bool operator==(const Pair&) const = default;
  };
  void look();

  const TlsFiles files_;
  Pair seen_, good_;
};

}  // namespace paceline::web

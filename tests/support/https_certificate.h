#pragma once

// Files of a certificate for localhost, for servers of tests.

#include <gtest/gtest.h>

#include <string>

#include "base/file.h"
#include "controller/web/server_certificate.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_certificates.h"

namespace paceline {

class HttpsCertificate {
 public:
  HttpsCertificate() { renew(authority_); }

  // By another authority: whoever trusts the one trusts nothing of the other's.
  void renew(const TestAuthority& authority) const {
    const KeyPair pair = authority.issue("localhost", "DNS:localhost,IP:127.0.0.1");
    write(files().key, pair.key_pem);
    write(files().certificate, pair.certificate_pem);
  }
  static void write(const std::string& path, const std::string& text) {
    const absl::Status written = write_file_atomically(path, text);
    EXPECT_TRUE(written.ok()) << written;
  }

  const std::string& authority() const { return authority_.certificate_pem(); }
  web::TlsFiles files() const { return {folder_.path() + "/tls.crt", folder_.path() + "/tls.key"}; }

 private:
  const TemporaryFolder folder_;
  const TestAuthority authority_{"authority"};
};

}  // namespace paceline

#pragma once

// Certificates for tests, made when they are needed: an authority, and what it signs. One thread.

#include <memory>
#include <string>

namespace paceline {

struct KeyPair {
  std::string certificate_pem, key_pem;
};

class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name);
  ~TestAuthority();
  TestAuthority(const TestAuthority&) = delete;
  TestAuthority& operator=(const TestAuthority&) = delete;

  const std::string& certificate_pem() const;
  // `names`: "DNS:localhost,IP:127.0.0.1", or empty. An expired one was valid until an hour ago.
  KeyPair issue(const std::string& common_name, const std::string& names, bool expired = false) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace paceline

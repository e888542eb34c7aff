#pragma once

// Keeps a valid certificate in two files, which a server reads again when they change: made anew when two
// thirds of its time are over. Thread-safe; one thread of its own.

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "base/log.h"
#include "controller/certificates/authority.h"

namespace paceline::certificates {

inline constexpr Duration kValid = std::chrono::hours(24 * 90);
inline constexpr Duration kRetry = std::chrono::seconds(2);  // where the authority can't be had

struct CertificateFiles {
  std::string certificate, key;  // paths, PEM
};

class CertificateKeeper {
 public:
  using FindAuthority = std::function<absl::StatusOr<KeyPair>()>;

  // The files lie in a folder of its own, which goes with it, and are there at once. While the authority
  // can't be had, nobody can trust what they hold: probes, which verify nothing, are answered, and the log
  // says why. Errors: folder or files can't be made.
  static absl::StatusOr<std::unique_ptr<CertificateKeeper>> start(FindAuthority find_authority,
                                                                  std::vector<std::string> names,
                                                                  const Clock& clock, Logger log);
  ~CertificateKeeper();

  CertificateFiles files() const { return {folder_ + "/tls.crt", folder_ + "/tls.key"}; }
  // The certificate that clients trust, in PEM; empty: it could not be had yet.
  std::string authority();
  // False: no authority within `limit`.
  bool wait(Duration limit);

 private:
  CertificateKeeper(FindAuthority find_authority, std::vector<std::string> names, const Clock& clock,
                    Logger log, std::string folder);
  void run(const std::stop_token& stop);
  absl::StatusOr<std::string> renew();
  absl::Status write(const KeyPair& authority) const;

  const FindAuthority find_authority_;
  const std::vector<std::string> names_;
  const Clock& clock_;
  const Logger log_;
  const std::string folder_;
  struct State {
    std::string authority;
    bool ends = false;
  };
  Guarded<State> state_;
  std::jthread thread_;
};

}  // namespace paceline::certificates

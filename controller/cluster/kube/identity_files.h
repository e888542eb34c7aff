#pragma once

// Certificates, keys and authorities that stand in files, which somebody else renews while we run.

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/log.h"
#include "controller/cluster/kube/credentials.h"
#include "controller/cluster/kube/kubeconfig.h"

namespace paceline::kube {

inline constexpr std::size_t kMaxPemBytes = 4u << 20;
inline constexpr Duration kPemFileAge = std::chrono::minutes(1);

// The text, or what the file holds; empty where there is neither. INVALID_ARGUMENT: it is no PEM. `where` is
// named in errors.
absl::StatusOr<std::string> read_pem(const PemSource& source, const std::string& where);

// The client's certificate and key, and the authorities of the server; each a text, a file, or nothing.
struct IdentityFiles {
  PemSource certificate, key, ca;
  std::string where;  // the entry that names them: for errors
};

// What `inner` gives and, where it has no certificate of its own, these; the authorities always. Files are
// read at once, which may fail, again after kPemFileAge, and after a 401, but no more often than every
// kLeastTimeBetweenFetches. What changed is another identity, and gets connections of its own. While a file
// can't be read, or a key is not its certificate's (one of both was renewed so far), the last ones serve on.
// Thread-safe. `clock` must outlive the result.
absl::StatusOr<std::unique_ptr<Credentials>> with_files(std::unique_ptr<Credentials> inner,
                                                        IdentityFiles files, const Clock& clock,
                                                        Logger logger);

}  // namespace paceline::kube

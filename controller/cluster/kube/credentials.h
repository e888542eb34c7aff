#pragma once

// Who we are to the API server, and where that comes from: kubeconfig or the pod's service account.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/log.h"
#include "controller/cluster/kube/endpoint.h"
#include "controller/cluster/kube/exec_credential.h"
#include "controller/cluster/kube/kubeconfig.h"

namespace paceline::kube {

// What is sent along with a request. Immutable.
struct Identity {
  std::uint64_t number = 0;                                  // another identity has another number
  std::vector<std::pair<std::string, std::string>> headers;  // Authorization, Impersonate-*
  std::string certificate_pem, key_pem;                      // both or none
  std::string ca_pem;  // what the server is told by, instead of the endpoint's; empty: the endpoint's
};
using IdentityPtr = std::shared_ptr<const Identity>;

// With a number of its own in this process, so that credentials may be swapped without a mix-up.
IdentityPtr numbered(Identity identity);

// Thread-safe.
class Credentials {
 public:
  virtual ~Credentials() = default;
  // UNAUTHENTICATED: they can't be had; DEADLINE_EXCEEDED: not by then; CANCELLED: `stop` was requested.
  virtual absl::StatusOr<IdentityPtr> get(Deadline deadline, std::stop_token stop) = 0;
  // The server answered 401 to this one. The next get() fetches anew where that can help; otherwise it
  // returns the same.
  virtual void refused(const Identity& identity) = 0;
};

// The part of an identity that does not change.
struct FixedIdentity {
  std::vector<std::pair<std::string, std::string>> headers;
  std::string certificate_pem, key_pem;
};

// The same for ever.
std::unique_ptr<Credentials> fixed_credentials(FixedIdentity identity);

// A bearer token in a file that somebody else rotates: read again after kTokenFileAge, and after a 401, but
// no more often than every kLeastTimeBetweenFetches. While the file can't be read, the last token serves on.
// `clock` must outlive the result.
inline constexpr Duration kTokenFileAge = std::chrono::minutes(1);
inline constexpr Duration kLeastTimeBetweenFetches = std::chrono::seconds(1);
std::unique_ptr<Credentials> token_file_credentials(std::string path, FixedIdentity rest, const Clock& clock,
                                                    Logger logger);

// A plug-in's credential, kept until shortly before it expires or until a 401. One run at a time, in a thread
// of its own, so that a caller who gives up does not end it for the others; its failure is everybody's answer
// for kLeastTimeBetweenFetches. Destruction kills a running plug-in. `clock` must outlive the result.
using RunPlugin = std::function<absl::StatusOr<ExecCredential>(std::stop_token stop)>;
std::unique_ptr<Credentials> exec_credentials(RunPlugin run, FixedIdentity rest, const Clock& clock);

// All that is needed to talk to one API server.
struct KubeAccess {
  Endpoint endpoint;
  std::shared_ptr<Credentials> credentials;
  std::string ns;       // of the context, or the pod's own
  std::string context;  // empty in a cluster
  std::string source;   // for people: "context dev of /home/me/.kube/config", "the pod's service account"
};

struct AccessOptions {
  std::string kubeconfig;  // --kubeconfig: this file and no other
  std::string context;     // --context
  // The process's environment; tests have their own.
  std::function<std::optional<std::string>(const char* name)> variable;
  std::string service_account_folder = "/var/run/secrets/kubernetes.io/serviceaccount";
};

// The order is kubectl's: --kubeconfig, the files of $KUBECONFIG, ~/.kube/config, the pod's service account.
// NOT_FOUND: none of these is there. `clock` must outlive the result.
absl::StatusOr<KubeAccess> find_access(const AccessOptions& options, const Clock& clock, Logger logger);

}  // namespace paceline::kube

#pragma once

// The gate of a dashboard on a cluster: each request brings a bearer token of the API server's, which says
// whose it is (TokenReview) and what he may (SubjectAccessReview): get, update and delete on one TrainingJob,
// and list in which namespaces. Answers count for AccessCache::kKept; a stream's viewer is asked for again
// as long as it lasts, and it ends where the API server does not answer for kPatience. Nothing is known by
// cookies. Bounds: access_cache.h; kPerSecond requests and kMostStreams streams of each user,
// kReviewsPerSecond tokens that were not somebody's before from each address, and no more than half of those
// that are looked up at a time. Thread-safe.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/guarded.h"
#include "controller/cluster/kube/api_client.h"
#include "controller/dashboard/access_cache.h"
#include "controller/dashboard/gate.h"
#include "controller/dashboard/workers.h"

namespace paceline::dashboard {

class TokenGate final : public Gate {
 public:
  static constexpr double kPerSecond = 20, kBurst = 100;
  static constexpr double kReviewsPerSecond = 10, kReviewsBurst = 50;
  static constexpr int kMostStreams = 24;
  static constexpr std::size_t kMostNamespaces = 1000;  // that are asked for
  static constexpr Duration kPatience = std::chrono::seconds(30);

  // `api`: may create both kinds of reviews; it and the clock outlive the gate, and the gate its streams.
  // `namespaces`: that have jobs, those that matter most first.
  TokenGate(kube::ApiClient& api, std::function<std::vector<std::string>()> namespaces, const Clock& clock)
      : api_(api), namespaces_(std::move(namespaces)), clock_(clock) {}

  void admit(const web::HttpRequest& request, const Need& need, Then then) override;
  void open(const web::HttpRequest& request, const std::string& token,
            std::function<void(Opened)> then) override;
  void close() override { workers_.reset(); }

 private:
  class ViewerSight;
  enum class Ask : bool { kCached, kServer };
  void admit(const std::string& peer, std::string token, Need need, Then then);
  // The lane of a question to the API server: that of the token's user, or of the address. Nothing: too many
  // tokens of that address are not known.
  std::optional<std::string> lane(const std::string& peer, const std::string& token);
  // Empty: the API server has to be asked. `counted`: among the user's requests.
  std::optional<Admission> decide(const std::string& token, const Need& need, Ask ask, bool& counted);
  // Likewise; an error is the API server's.
  std::optional<absl::StatusOr<std::optional<Somebody>>> who(const std::string& token, Ask ask);
  std::optional<absl::StatusOr<bool>> may(const Digest& token, const Somebody& who, const std::string& verb,
                                          const std::string& ns, const std::string& name, Ask ask);
  std::optional<absl::StatusOr<Namespaces>> sees(const Digest& token, const Somebody& who, Ask ask);

  kube::ApiClient& api_;
  const std::function<std::vector<std::string>()> namespaces_;
  const Clock& clock_;
  struct Known {
    AccessCache cache;
    RequestLimits requests{kPerSecond, kBurst};               // by user
    RequestLimits reviews{kReviewsPerSecond, kReviewsBurst};  // by address
    std::map<std::string, int> streams;                       // that are open, by user
  };
  Guarded<Known> known_;
  std::unique_ptr<Workers> workers_ = std::make_unique<Workers>(4);
};

}  // namespace paceline::dashboard

#pragma once

// Writes the EndpointSlices of jobs' Services, as host_names.h decides. What is there already is known from
// an informer of our own slices, so that a controller that has just begun writes nothing that is right, and
// one that somebody deletes comes back.
//
// Nothing else waits for that informer: where slices may not be listed (an older ClusterRole), jobs run, and
// publish() says why the names of those that have pods lead nowhere.
//
// Thread-safe; of one job one call at a time.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "base/log.h"
#include "controller/cluster/kube/api_client.h"
#include "controller/cluster/kube/host_names.h"
#include "controller/cluster/kube/informer.h"
#include "controller/cluster/kube/object_store.h"

namespace paceline::kube {

inline constexpr std::size_t kMostGathering = 100'000;  // jobs; of more the gathering begins anew
inline constexpr Duration kListLook = std::chrono::seconds(1);

struct NamePublisherOptions {
  std::string ns;  // empty: all namespaces
  std::uint64_t seed = 1;
  ReflectorLimits limits;
  Pause pause = real_pause;
};

class NamePublisher {
 public:
  // The references must outlive it; `on_change` is the informer's.
  NamePublisher(ApiClient& api, const Clock& clock, Logger log, Informer::OnChange on_change,
                const NamePublisherOptions& options);

  // Once.
  void start() { informer_.start(); }

  // Writes what is due; returns after how long to call again even if no pod and no slice changes. Errors: the
  // API server's; why slices can't be listed; FAILED_PRECONDITION for a slice of that name that is not ours;
  // ABORTED for one that somebody else has changed at this moment, or that is about to go with the job that
  // had this one's name; CANCELLED in a namespace that ends.
  absl::StatusOr<std::optional<Duration>> publish(const Owner& owner, std::size_t pods_wanted,
                                                  std::vector<std::shared_ptr<const SlimPod>> pods);

 private:
  absl::Status write(const Owner& owner, SliceWrite& slice);
  absl::Status change(const Owner& owner, SliceWrite& slice);

  ApiClient& api_;
  const Clock& clock_;
  ObjectStore<SlimSlice> store_;
  Guarded<std::map<std::string, TimePoint>> gathering_;  // by job's key: since when something is to change
  Informer informer_;                                    // last: it calls into the above
};

}  // namespace paceline::kube

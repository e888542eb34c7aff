#pragma once

// The samples of all jobs of an API server that go on (status_samples.h). Bounded: of kMost jobs (the one
// whose status changed longest ago goes). Thread-safe.

#include <cstddef>
#include <map>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/guarded.h"
#include "controller/cluster/kube/json.h"
#include "controller/dashboard/status_samples.h"

namespace paceline::dashboard {

class JobSamples {
 public:
  static constexpr std::size_t kMost = 512;

  explicit JobSamples(const Clock& clock) : clock_(clock) {}

  // Takes the status of a job, and says what is known by now; nothing: the status has no new step.
  struct Now {
    std::uint64_t version = 0;
    Step newest = -1;
  };
  std::optional<Now> add(const std::string& uid, const kube::Json& object);
  void forget(const std::string& uid) { jobs_.lock()->erase(uid); }
  // A copy, so that nobody waits for a replay; empty where nothing was sampled.
  StatusSamples of(const std::string& uid) const;

 private:
  struct Sampled {
    TimePoint changed{};
    StatusSamples samples;
  };
  const Clock& clock_;
  mutable Guarded<std::map<std::string, Sampled>> jobs_;  // by uid
};

}  // namespace paceline::dashboard

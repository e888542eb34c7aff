#pragma once

// The samples of an API server's jobs (status_samples.h). Bounded: kMostCells, or 192 MiB, in all. A job that
// goes on has room for all samples of its members from its first one on, so that it keeps them whatever jobs
// come: kMostCells are 2,048 jobs of 8 members, or 94 of 256. Where there is no room, the job goes that ended
// longest ago; where none has ended, a job that is new has no samples, and one that has got more members
// keeps fewer. Thread-safe.

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
  static constexpr std::size_t kMostCells = 6 << 20;
  static_assert(kMostCells * StatusSamples::kCellBytes == 192 << 20);

  explicit JobSamples(const Clock& clock) : clock_(clock) {}

  // Takes the status of a job, and says what is known by now; nothing: the status has no new step, the job
  // has ended, or there is no room for it.
  struct Now {
    std::uint64_t version = 0;
    Step newest = -1;
  };
  std::optional<Now> add(const std::string& uid, const kube::Json& object);
  void forget(const std::string& uid);
  // A copy, so that nobody waits for a replay; empty where nothing was sampled.
  StatusSamples of(const std::string& uid) const;

 private:
  struct Sampled {
    StatusSamples samples;
    std::size_t room = 0;            // cells
    std::optional<TimePoint> ended;  // since when it does not go on
  };
  struct Jobs {
    std::map<std::string, Sampled> known;  // by uid
    std::size_t room = 0;                  // of them all
    // The number of a new job's first sample: a job that has gone and comes back repeats none.
    std::uint64_t first = 0;
  };
  static void erase(Jobs& jobs, const std::string& uid);
  static bool make_room(Jobs& jobs, std::size_t cells);
  const Clock& clock_;
  mutable Guarded<Jobs> jobs_;
};

}  // namespace paceline::dashboard

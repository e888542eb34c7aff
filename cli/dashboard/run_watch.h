#pragma once

// Notices what changes among the runs of this machine: a look at all of them costs a stat each, and what has
// changed is read. A pass reads for about kPassLimit: where more has changed, the rest comes with later
// passes, runs that are looked at first. One thread.

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "cli/state/run_store.h"
#include "controller/dashboard/board.h"
#include "controller/jobs/job_source.h"

namespace paceline::cli {

class RunWatch {
 public:
  static constexpr Duration kPassLimit = std::chrono::milliseconds(40);
  // A run that should go on, and whose status does not change, may have lost its owner.
  static constexpr Duration kOwnerLook = std::chrono::seconds(2);

  // `runs`: of that store. All outlive it.
  RunWatch(const RunStore& store, jobs::JobSource& runs, const Clock& clock)
      : folder_(store.state_folder() + "/runs"), runs_(runs), clock_(clock) {}

  // Returns what is new since the last pass. `first`: names that are read before others.
  dashboard::Board::Changes pass(const std::vector<std::string>& first);
  // Each run has been read once.
  bool all_read() const { return all_read_; }

 private:
  struct Version {
    ino_t number = 0;
    std::int64_t seconds = 0, nanoseconds = 0;
    bool operator==(const Version&) const = default;
  };
  struct Run {
    Version status, job;  // of what was read
    std::string key;      // on the board; empty: it is not there
    bool ended = false;
    TimePoint read_at{};
    std::string left_out;  // why it is not on the board; empty: it is, or is no run
  };

  static Version version_of(const std::string& path);
  bool may_have_others();
  void look_for_runs(dashboard::Board::Changes& changes);
  bool is_due(const std::string& name, const Run& run, Version& status, Version& job) const;
  void read(const std::string& name, Run& run, dashboard::Board::Changes& changes);
  std::vector<std::string> left_out() const;

  const std::string folder_;
  jobs::JobSource& runs_;
  const Clock& clock_;
  Version listed_;                    // of the folder, when it was listed
  std::map<std::string, Run> known_;  // by name
  std::string next_;                  // where the next pass begins
  bool left_out_changed_ = false, all_read_ = false;
};

}  // namespace paceline::cli

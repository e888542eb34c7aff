#pragma once

// Checkpoints in their place among the steps: a member tells of one at once, but of its losses and
// evaluations with its next heartbeat. Who hears of a checkpoint first waits for the steps before it. Pure;
// one thread.

#include <deque>
#include <optional>
#include <vector>

#include "base/clock.h"
#include "cli/run/failed_save.h"
#include "controller/coordinator/report.h"

namespace paceline::cli {

class HeldCheckpoints {
 public:
  // However late the steps are, it is not held for longer.
  static constexpr Duration kMost = std::chrono::seconds(1);

  void add(const coordinator::CheckpointRecord& record, TimePoint now);
  // The newest step of those that were added and had been written; empty: there was none.
  std::optional<Step> newest() const { return newest_; }
  // The newest save, where it failed.
  std::optional<FailedSave> failed_save() const;
  // Those of steps up to `told`, of which all is told, and those that have waited for long enough; in order.
  std::vector<coordinator::CheckpointRecord> take(Step told, TimePoint now);

 private:
  struct Held {
    coordinator::CheckpointRecord record;
    TimePoint until;
  };
  std::optional<Step> newest_;
  std::optional<FailedSave> failed_;
  std::deque<Held> held_;  // as they came; bounded by how many are written in kMost
};

}  // namespace paceline::cli

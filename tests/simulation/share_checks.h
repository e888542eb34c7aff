#pragma once

// These hold of the shares of the global batch, whatever happens: in each view they are whole samples that
// add up to the batch, one at least for each member where there are enough; they are even but where the job
// has them follow speed; and one coordinator sets those of the same members anew only once the job may have
// lost lostSeconds to the ones before.

#include <map>
#include <string>
#include <vector>

#include "base/clock.h"
#include "controller/reconcile/job_store.h"
#include "proto/paceline/v1/coordinator.pb.h"
#include "tests/simulation/trace.h"

namespace paceline::simulation {

class ShareChecks {
 public:
  explicit ShareChecks(Trace& trace) : trace_(trace) {}

  // A view that no member had seen before, by `coordinator`, of a job with this global batch; `members` names
  // its members.
  void on_view(const std::string& coordinator, const v1::View& view, const std::string& members,
               std::int64_t batch, const reconcile::StoredJob* job);
  int changes() const { return changes_; }  // of shares, of the same members

 private:
  struct Last {
    std::string members;
    std::vector<std::int64_t> samples;
    TimePoint since{};  // they have these samples
  };
  Trace& trace_;
  std::map<std::string, Last> last_;  // by coordinator
  int changes_ = 0;
};

}  // namespace paceline::simulation

#pragma once

// These hold after every event, whatever happens. The first breach is the world's failure.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "controller/api/types.h"
#include "proto/paceline/v1/coordinator.pb.h"
#include "runtime/trainer/state_source.h"
#include "tests/simulation/api_server.h"
#include "tests/simulation/handover_checks.h"
#include "tests/simulation/share_checks.h"
#include "tests/simulation/trace.h"

namespace paceline::simulation {

class MemberProcess;
struct Training;

class Checks {
 public:
  // `harmless`: nothing happens to a member, so that nobody may start again. `keeps`: checkpoints outlive
  // pods.
  Checks(Trace& trace, const Training& training, const ApiServer& api, bool harmless, bool keeps)
      : trace_(trace),
        training_(training),
        api_(api),
        harmless_(harmless),
        keeps_(keeps),
        handovers_(trace, api),
        shares_(trace) {}

  // Weights: what a step makes of them, and what they are after so many steps of an undisturbed training.
  static std::uint64_t sum_of(std::span<const std::int64_t> samples);
  static std::uint64_t fold(std::uint64_t weights, Step step, std::uint64_t sum);
  std::uint64_t weights_after(Step steps);

  const HandoverChecks& handovers() const { return handovers_; }
  const ShareChecks& shares() const { return shares_; }

  // Generations rise for each member; a coordinator gives a generation one view, and so do several to one
  // member; ranks are a permutation; sizes within bounds, and no less than before where nobody is harmed.
  void on_view_seen(const MemberProcess& member, const v1::View& view);
  // Training goes on from the highest step that a member of the view holds.
  void on_source(const MemberProcess& member, const v1::View& view,
                 const std::optional<trainer::Source>& source);
  // All members hold what an undisturbed training holds: each sample counts once, and in its order. No other
  // member of the attempt that is within reach holds more: but for one that leaves since it has finished, or
  // fails or was asked to stop and its checkpoint went with its pod; and for one step of a member whose pod
  // is to go.
  void on_aligned(const MemberProcess& member, const v1::View& view);
  void on_applied(const MemberProcess& member, const v1::View& view);
  void on_saved(const MemberProcess& member);
  // Statuses only go forward, budgets are kept, and success is training that is done. A pod is made when an
  // earlier one of its place is gone, ends, or is to go; or it is of an earlier number than that one, so that
  // its member is refused; or it is to take over from that one, which is slow.
  void on_change(const ApiServer::Change& change);
  // `is_reached`: whether a controller reaches that node, and it that one, since a while ago.
  void know_reach(std::function<bool(int node)> is_reached) { is_reached_ = std::move(is_reached); }
  // Members that wait while others train are taken in, as nothing disturbs any more since `calm`; but for the
  // end of training, when one of them has finished.
  void at_calm(TimePoint now, TimePoint calm);
  // When it is over: nothing runs any more, nor is to.
  void at_end(const std::vector<const MemberProcess*>& alive);
  // A pod is to start yet, or a handover is under way.
  bool is_something_left() const;

  // All that ever were; for on_source() and on_view_seen().
  void know_members(const std::vector<std::unique_ptr<MemberProcess>>& members) { members_ = &members; }
  // A job of its size was edited since: a view may be of the one before, for a while.
  void may_have(std::int64_t least, std::int64_t most) {
    least_ = std::min(least_, least);
    most_ = std::max(most_, most);
    wanted_ = std::min(wanted_, most);
  }

 private:
  void check_weights(const MemberProcess& member, const char* when);
  void on_pod(const cluster::Pod& pod);
  void on_status(const reconcile::StoredJob& before, const reconcile::StoredJob& after);

  Trace& trace_;
  const Training& training_;
  const ApiServer& api_;
  const bool harmless_, keeps_;
  const std::vector<std::unique_ptr<MemberProcess>>* members_ = nullptr;
  std::function<bool(int)> is_reached_;
  std::vector<std::uint64_t> undisturbed_;
  TimePoint last_view_{};
  std::int64_t least_ = 1 << 20, most_ = 0, wanted_ = 1 << 20;
  std::set<std::string> pods_;  // by uid
  // By coordinator, job and generation: its members.
  std::map<std::string, std::string> views_;
  std::map<std::string, std::uint64_t> generations_;  // of each member
  std::map<std::string, std::int64_t> sizes_;         // of the newest view of each job, by uid
  std::shared_ptr<const reconcile::StoredJob> job_;   // as it was written last
  HandoverChecks handovers_;
  ShareChecks shares_;
};

}  // namespace paceline::simulation

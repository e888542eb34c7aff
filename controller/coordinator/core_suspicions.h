#pragma once

// Suspicions of one view's members, for CoordinatorCore's own files: from what is seen of them and what peers
// report, to the verdict on one member, once it is time (core.h, "Diagnosis"). It only names the member; the
// core carries the verdict out. Pure.
//
// Evidence of a single member lies with its slot (Slot::evidence); reports of peers, and ranks whose weights
// differ, lie here, since they need more than one member to be seen.
//
//   none -> open      there is evidence or a report; `since` is when it was noticed, or began
//   open -> verdict   ripe(): as soon as better evidence can't be under way, or has had its time
//   open -> none      what was seen is gone: the member came back, or the view is over

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "base/clock.h"
#include "controller/api/fault.h"
#include "controller/coordinator/core.h"
#include "controller/coordinator/core_places.h"
#include "controller/coordinator/core_watch.h"
#include "controller/diagnosis/root_cause.h"

namespace paceline::coordinator {

class Suspicions {
 public:
  // All three outlive it.
  Suspicions(const CoreConfig& config, const Places& places, const Watch& watch)
      : config_(config), places_(places), watch_(watch) {}

  // --- what it hears
  // A member's word about a peer. One of a pair counts, and of a member that trains one at all, since it
  // stops then; a server goes on without those it has lost, who may be all: were one of its reports left out,
  // it would seem to reach that one still. False: this one does not count. REQUIRES: two members.
  bool report(const Slot& reporter, const Slot& peer, std::string reason);
  // The weights of these ranks differ from those of `from`; ranks of earlier words are dropped.
  void differ(std::vector<int> ranks, std::string from, TimePoint now);
  // The coordinator's own process stood still until now: streams that have ended meanwhile, or end soon, are no
  // sign of a death, since members gave it up. They come back within kReturnGrace.
  void was_away(TimePoint now) { returned_ = now; }
  // All that was reported by a member or about it.
  void forget(const Slot& slot);
  // Words of the view that ends count no more; slots keep their evidence. The window stays, until the next
  // look finds it empty.
  void view_is_over();
  // The same, and the window with it.
  void clear();
  // The next view is formed without a member, whose slot has no evidence any more. `in_view`: it was in the
  // one before, which is over.
  void leave_behind(bool in_view);
  // The view goes on without this member. The others' evidence has had its time since it was seen; what peers
  // have reported has it anew.
  void go_on_without(const Slot& slot);

  // --- what it knows
  bool open() const { return since_.has_value(); }
  std::optional<TimePoint> since() const { return since_; }
  bool has_report_by(const Slot& reporter) const;

  // --- what it concludes
  // The verdict, where there is one and it is time. `forming`: there is no view; `next_view`: whether such a
  // verdict leads to the next view, which needs no better evidence: it is formed without all that are gone.
  std::optional<api::Fault> ripe(TimePoint now, bool forming,
                                 absl::FunctionRef<bool(const api::Fault&)> next_view);

 private:
  std::vector<diagnosis::Evidence> all_evidence() const;
  diagnosis::Surroundings surroundings() const;
  void reopen();
  bool expects_the_asked(std::span<const diagnosis::Evidence> evidence) const;
  bool may_come_back(const Slot& slot, TimePoint now) const;
  bool awaits_the_quiet(TimePoint now, Duration waited, bool forming) const;
  api::Fault verdict_on(const diagnosis::RootCause& root) const;
  api::Victim victim_of(const diagnosis::RootCause& root, const Slot& slot) const;
  const Slot& slot_at(int number) const { return places_.slots()[static_cast<std::size_t>(number)]; }

  const CoreConfig& config_;
  const Places& places_;
  const Watch& watch_;
  static constexpr Duration kReturnGrace = std::chrono::seconds(10);  // they try again every 6 s, or sooner
  std::optional<TimePoint> since_, returned_;
  std::vector<diagnosis::PeerReport> reports_;
  std::vector<int> diverged_;  // ranks
  TimePoint diverged_since_{};
  std::string diverged_from_;
};

}  // namespace paceline::coordinator

#pragma once

// The stragglers of a job, for CoordinatorCore's own files: what members tell of their steps and of their
// links goes to the detectors (controller/stragglers), and what they find becomes a straggler with its member
// and its cause. A slow link explains a step that takes longer for all.
// Pure.
//
// It looks where a step waits for all that train: in a ring, and with servers that update synchronously.

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "controller/api/straggler.h"
#include "controller/coordinator/core_places.h"
#include "controller/coordinator/report.h"
#include "controller/stragglers/detector.h"
#include "controller/stragglers/links.h"
#include "proto/paceline/v1/coordinator.pb.h"

namespace paceline::coordinator {

// The cause of one finding, from what was seen whenever its member told of its steps: what a member's kernel
// tells of the last second comes and goes, and a finding has one cause. Pure.
class Causes {
 public:
  // `part`: of a step, where most of the excess is; another one has causes of its own.
  void add(const std::string& part, api::StragglerCause cause, std::string evidence);
  // Sets cause and evidence: the known cause that was seen most often, if it was in a quarter of the looks.
  void set(api::Straggler& straggler) const;

 private:
  static constexpr int kMostLooks = 32;
  struct Seen {
    int times = 0;
    std::string evidence;  // the newest
  };
  std::string part_;
  std::map<api::StragglerCause, Seen> seen_;
  int looks_ = 0;
};

class Stragglers {
 public:
  static constexpr std::size_t kMostTold = 16;  // at once: those that take the longest

  // `known`: the job's stragglers, as an earlier coordinator found them. Who is slow of those stays so until
  // enough steps are known, and the test says that it is not.
  explicit Stragglers(bool looks, std::vector<api::Straggler> known = {});

  // A view of these slots begins; their ranks are set. Another member in a place is another member.
  // `samples`: of each rank, where shares follow speed: then nobody is told of for having more of them. Where
  // they are others than before, all times will be: nothing is known until there are enough of those, and the
  // findings of before stand.
  void begin_view(std::span<const Slot> slots, std::span<const std::int64_t> samples = {},
                  bool other_samples = false);
  // Another member has this place.
  void forget(int place) { detector_.forget(place); }
  void add(const Slot& slot, int place, const MemberSteps& steps);
  void add_links(const Slot& slot, int place, const v1::Links& links);
  // Draws the conclusions: what has changed since the last call.
  std::vector<StragglerChange> conclude(std::span<const Slot> slots);
  // The pods of the newest kMostTold members that were found to be slow, and are no more.
  const std::vector<std::string>& cleared() const { return cleared_; }
  // The stragglers of now. Nothing: too few steps are known.
  std::optional<std::vector<api::Straggler>> now(std::span<const Slot> slots) const;
  // It knows too few steps of a view with other samples: who is slow was found before.
  bool settles() const { return anew_ && !detector_.knows(); }
  // Each member gets stragglers::Detector::own_times().
  std::vector<double> own_times() const { return detector_.own_times(); }

 private:
  std::vector<api::Straggler> describe(std::span<const Slot> slots) const;
  bool stands(const api::Straggler& told, std::span<const Slot> slots) const;
  bool is_judged(const api::Straggler& inherited, std::span<const Slot> slots) const;
  void count_causes(std::span<const Slot> slots);
  api::Straggler describe(const stragglers::Finding& finding, std::span<const Slot> slots) const;
  api::Straggler describe(const stragglers::LinkFinding& finding, std::span<const Slot> slots) const;

  bool looks_;
  stragglers::Detector detector_{stragglers::Settings{}};
  stragglers::Links links_;
  bool anew_ = false;  // a view with other samples has begun, or this coordinator after another one
  std::vector<api::Straggler> inherited_;  // found by that one, and not judged by this one yet
  std::vector<double> work_;               // by rank: samples of a step; empty: as many for all
  std::vector<int> ranks_;                 // by place; -1: not in the view
  std::vector<std::string> ids_;           // by place: of the member whose steps are known
  std::map<int, Causes> causes_;           // by place: of those that are found to be slow
  std::set<int> heard_;                    // places that have told of steps since the last conclusion
  std::vector<api::Straggler> told_;       // found, and not cleared yet
  std::vector<std::string> cleared_;
};

}  // namespace paceline::coordinator

#pragma once

// From what a coordinator has seen of its members to the one at the root. Pure.
//
// Hard evidence is about the member itself: it is dead, frozen, failed on its own account, or its weights
// differ. Soft evidence is one member's word about another: reports of peers (peer_reports.h), and a failure
// whose cause, the member says, is a peer, or may have said where no coordinator heard it. Any hard evidence
// outweighs all soft evidence, and of hard evidence the earliest onset is the root cause.

#include <optional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "controller/api/fault.h"
#include "controller/diagnosis/peer_reports.h"

namespace paceline::diagnosis {

// One thing that was seen of one member.
struct Evidence {
  int slot = 0;
  api::Observation seen;
  TimePoint since;       // when it began to be so: of a silent member, when it was last heard
  bool soft = false;     // it failed after it reported a peer, perhaps to nobody, or it `follows`
  bool follows = false;  // it stopped because another member was asked to, which will say so itself
  bool lapsed = false;   // nothing but its stream has ended: it may come back
};

struct RootCause {
  int slot = 0;
  api::Observation seen;
  std::vector<int> victims;  // other slots with evidence, and reporters; ascending
  bool sure = true;          // false: more reports may be under way that name another one
};

// The result is empty where there is neither evidence nor report.
std::optional<RootCause> find_root_cause(std::span<const Evidence> evidence,
                                         std::span<const PeerReport> reports, const Surroundings& around);

// Whether some of it is hard.
bool has_hard(std::span<const Evidence> evidence);
// Whether there is some, and all of it is about members that follow one that was asked to stop.
bool all_follow(std::span<const Evidence> evidence);

}  // namespace paceline::diagnosis

#pragma once

// From evidence to one culprit. Pure.
//
// Hard evidence is about the member itself: it is dead, frozen, failed on its own account, or its weights
// differ. Soft evidence is what one member says about another: accusations (core_reports.h), and a failure
// whose cause, the member says, is a peer, or may have said where no coordinator heard it. Any hard evidence
// outweighs all soft evidence, and of hard evidence the earliest onset is the root cause.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "controller/coordinator/core_reports.h"
#include "controller/coordinator/report.h"

namespace paceline::coordinator {

// Of one member.
struct Evidence {
  int slot = 0;
  FaultKind kind = FaultKind::kDead;
  TimePoint since;  // when it began to be so: of a silent member, when it was last heard
  std::string text;
  bool accusing = false;  // soft: failed after having reported a peer, perhaps to nobody, or `follows`
  bool follows = false;   // stopped because another member was asked to, which will say so itself
  bool lapsed = false;    // nothing but its stream has ended: it may come back
};

struct Judgement {
  int culprit = 0;  // slot
  FaultKind kind = FaultKind::kDead;
  std::string text;
  std::vector<int> victims;  // other slots with evidence, and accusers; ascending
  bool sure = true;          // false: more reports may be under way that name another one
};

// Nothing when there is neither evidence nor accusation.
std::optional<Judgement> judge(std::span<const Evidence> evidence, std::span<const Accusation> accusations,
                               const Surroundings& around);

// True when some of it is hard.
bool has_hard(std::span<const Evidence> evidence);
// True when there is some, and all of it is about members that follow one that was asked to stop.
bool all_follow(std::span<const Evidence> evidence);

// Verdict::message: "worker-2 (rank 3, pid 4711 on host-a) died at step 120: killed by signal 9 (SIGKILL)".
std::string verdict_message(const Verdict& verdict);

}  // namespace paceline::coordinator

#pragma once

// A member that holds the others back, with the figures that the finding rests on. The coordinator finds it
// (controller/stragglers), controller/diagnosis says why, and the status keeps it while it lasts.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fields.h"
#include "base/ids.h"

namespace paceline::api {

enum class StragglerKind : std::uint8_t {
  kSlow,      // it takes longer for the same work
  kMoreWork,  // it takes longer, and as long as the others for each sample or token
  kAllSlow,   // a third of the members or more: nobody's fault
  kSlowLink,  // what it sends to one other member takes longer than what others send
};

enum class StragglerCause : std::uint8_t {
  kUnknown,
  kCpuQuota,        // the CPU limit of its container
  kCpuContention,   // other processes use the processors
  kMemoryPressure,  // memory is short: pages come from storage
  kGpuSlowdown,     // the GPU's clock is lower than it could be
  kStorage,         // reads wait for the storage
  kInput,           // its data comes late, for whatever reason
  kStopped,         // its process stands still now and then
  kUnfit,           // of a replacement alone: it failed the check before the first step
  kRequested,       // likewise: somebody asked for it
};

// The job's answer to it; `why` says the rest.
enum class StragglerAction : std::uint8_t {
  kReport,     // nothing
  kWait,       // something is done once that is worth it
  kReplace,    // a successor takes over
  kRebalance,  // the shares of the global batch follow speed
};

inline constexpr std::size_t kMostSlowMembers = 16;  // that are named

struct Straggler {
  StragglerKind kind = StragglerKind::kSlow;
  // Role, index, rank, pod and host say nothing where the kind is kAllSlow: `slow_members` does.
  Role role = Role::kWorker;
  std::int64_t index = 0, rank = -1;
  std::string pod, host;
  std::string peer, peer_pod;  // kSlowLink: the member that it sends to
  std::string part;            // of a step: input, compute, update or transfer
  double factor = 1;       // its own time over the other members' median; kAllSlow: a step over the usual one
  Step since_step = 0;     // the first that counts
  std::int64_t steps = 0;  // that count since then
  double own_ms = 0, typical_ms = 0;      // of a step: its own time, and the others' median
  double lost_ms = 0;                     // a step would be so much shorter without it
  std::int64_t members = 0;               // that are slow
  std::vector<std::string> slow_members;  // kAllSlow: their names, kMostSlowMembers at most
  StragglerCause cause = StragglerCause::kUnknown;
  std::string evidence;           // for the cause, in words; empty: there is none
  std::string node_trouble;       // what its node's conditions and taints say; empty: nothing
  std::optional<WallTime> since;  // when it was found
  std::string message;            // all this in a sentence
  StragglerAction action = StragglerAction::kReport;
  std::string why;  // of the action
  bool operator==(const Straggler&) const = default;
  static void fields(auto&& visit, auto& x) {
    visit(NamedField{"kind", "Slow, MoreWork, AllSlow or SlowLink."}, x.kind);
    visit(NamedField{"role"}, x.role);
    visit(NamedField{.name = "index", .always = true}, x.index);
    visit(NamedField{.name = "rank", .always = true}, x.rank);
    visit(NamedField{"pod"}, x.pod);
    visit(NamedField{"host", "Where it runs."}, x.host);
    visit(NamedField{"peer", "Of SlowLink: the member that it sends to."}, x.peer);
    visit(NamedField{"peerPod"}, x.peer_pod);
    visit(NamedField{"part", "Of a step: input, compute, update or transfer."}, x.part);
    visit(NamedField{"factor", "Its own time of a step over the other members' median."}, x.factor);
    visit(NamedField{"sinceStep", "The first step that counts."}, x.since_step);
    visit(NamedField{"steps", "That count since then."}, x.steps);
    visit(NamedField{"ownMs", "Its own time of a step."}, x.own_ms);
    visit(NamedField{"typicalMs", "The others' median."}, x.typical_ms);
    visit(NamedField{"lostMs", "A step would be so much shorter without it."}, x.lost_ms);
    visit(NamedField{"members", "Members that are slow."}, x.members);
    visit(NamedField{"slowMembers", "Of AllSlow: which of them, 16 at most."}, x.slow_members);
    visit(
        NamedField{
            "cause",
            "Unknown, CpuQuota, CpuContention, MemoryPressure, GpuSlowdown, Storage, Input or Stopped."},
        x.cause);
    visit(NamedField{"evidence", "For the cause."}, x.evidence);
    visit(NamedField{"nodeTrouble", "What the conditions and taints of its node say."}, x.node_trouble);
    visit(NamedField{"since", "When it was found."}, x.since);
    visit(NamedField{"message", "The same in a sentence."}, x.message);
    visit(NamedField{.name = "action", .about = "Report, Wait, Replace or Rebalance.", .always = true},
          x.action);
    visit(NamedField{"why", "Of the action."}, x.why);
  }
};

inline constexpr std::size_t kMostStragglerReplacements = 16;  // that a status keeps: the newest

enum class ReplacementOutcome : std::uint8_t {
  kUnderWay,
  kReplaced,     // another member has its rank
  kAsSlow,       // likewise, and its successor is slow, too: its node need not be avoided
  kRecovered,    // it holds the others back no more, and stays
  kNoSuccessor,  // none came, or none stayed
  kOverBefore,   // it was lost, or the job ended, was resized or suspended
  kExcluded,     // it failed the check before the first step, and was lost by that
};

// Whether the place is the successor's by then.
constexpr bool has_passed_on(ReplacementOutcome outcome) {
  using enum ReplacementOutcome;
  return outcome == kReplaced || outcome == kAsSlow || outcome == kExcluded;
}

// A member that was replaced, or was to be, because it was slow, because it failed a check, or by request.
struct StragglerReplacement {
  WallTime at{};  // decided
  Role role = Role::kWorker;
  std::int64_t index = 0;
  std::string pod, host, successor;  // its pod, where that ran, and the pod after it
  double factor = 0;                 // 0: it failed a check, or somebody asked for it
  StragglerCause cause = StragglerCause::kUnknown;
  ReplacementOutcome outcome = ReplacementOutcome::kUnderWay;
  std::optional<WallTime> ended;  // when it had this outcome
  std::string message;            // the outcome in a sentence
  bool operator==(const StragglerReplacement&) const = default;
  static void fields(auto&& visit, auto& x) {
    visit(NamedField{.name = "at", .about = "When it was decided.", .always = true}, x.at);
    visit(NamedField{"role"}, x.role);
    visit(NamedField{.name = "index", .always = true}, x.index);
    visit(NamedField{"pod", "Of the slow member."}, x.pod);
    visit(NamedField{"host", "Where it ran."}, x.host);
    visit(NamedField{"successor", "The pod after it."}, x.successor);
    visit(NamedField{"factor", "How slow it was; absent where it failed a check, or somebody asked for it."},
          x.factor);
    visit(NamedField{"cause",
                     "Why it was slow; Unfit: it failed the check before the first step; Requested: somebody "
                     "asked for it."},
          x.cause);
    visit(NamedField{.name = "outcome",
                     .about = "UnderWay, Replaced, AsSlow, Recovered, NoSuccessor, OverBefore or Excluded.",
                     .always = true},
          x.outcome);
    visit(NamedField{"ended", "When it had this outcome."}, x.ended);
    visit(NamedField{"message", "The outcome in a sentence."}, x.message);
  }
};

// The shares of the global batch were set anew (spec.stragglers.action: Rebalance).
struct Rebalance {
  Generation generation;              // of the first view with these shares
  std::vector<std::int64_t> samples;  // of a step, by rank
  bool even = false;                  // each member has as many
  std::string message;                // why
  bool operator==(const Rebalance&) const = default;
  static void fields(auto&& visit, auto& x) {
    visit(NamedField{"generation", "Of the first view with these shares."}, x.generation.value);
    visit(NamedField{.name = "samples", .about = "Of a step, by rank.", .items = 1024}, x.samples);
    visit(NamedField{.name = "even", .about = "Each member has as many.", .always = true}, x.even);
    visit(NamedField{"message", "Why."}, x.message);
  }
};

const char* name(StragglerKind value);
const char* name(StragglerCause value);
const char* name(StragglerAction value);
const char* name(ReplacementOutcome value);

}  // namespace paceline::api

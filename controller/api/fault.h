#pragma once

// The member at the root of a failure, and what became of it: found by controller/diagnosis, kept in the
// status. The coordinator fills in what it has seen; diagnosis::diagnose() adds what the cluster knows.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/fields.h"
#include "base/ids.h"

namespace paceline::api {

// Why a pod was started again. Those from kEvicted on are not the job's fault.
enum class RestartCause : std::uint8_t {
  kExited,            // by itself, with an exit code
  kKilled,            // by a signal
  kOomKilled,         // by the kernel, for want of memory
  kOutOfMemory,       // its own program found no memory, of its host or of its device
  kNotFinite,         // its loss or gradient
  kDataUnreadable,    // a file that it needs is missing, damaged or none that it can read
  kNotStarted,        // its command could not be started
  kSilent,            // frozen, unreachable, or it never joined
  kHung,              // alive, and it took no step any more while others waited for it
  kDiverged,          // other weights than its peers
  kDeadlineExceeded,  // the pod's own activeDeadlineSeconds
  kEvicted,           // by the kubelet or through the API: a node drained, short of memory or disk
  kPreempted,         // by pods of higher priority
  kNodeLost,          // its node does not answer any more, or is gone
  kNodeShutdown,      // its node shuts down
  kRefusedByNode,     // the scheduler chose a node that had no room after all
  kDeleted,           // somebody deleted the pod
  kControllerLost,    // it lost the coordinator for too long
  kResized,           // replicas was edited
  kUnfit,             // it failed the check before the first step
};

// Whether a restart for this cause counts against backoffLimit.
bool is_charged(RestartCause cause);

// The kind says what happened to a member. The coordinator tells those up to kDiverged; pods tell the others.
enum class FaultKind : std::uint8_t {
  kMissing,         // it never joined
  kDead,            // its stream ended without a goodbye, or its process did
  kFrozen,          // its heartbeats stopped
  kHung,            // its heartbeats come, and it takes no step any more
  kFailed,          // it said that it failed, or broke the protocol
  kOutOfMemory,     // it said so, or the kernel killed it for that
  kNotFinite,       // it said that its loss or gradient is not finite
  kDataUnreadable,  // it said so
  kUnreachable,     // it talks to the coordinator, but it and its peers lost each other
  kDiverged,        // its weights differ from the others'
  kRefused,         // its pod runs, and comes with another token than the job's
  kNotStarted,      // its command can't be started
  kKilled,          // its process ended by a signal
  kExited,          // its process ended by itself
  kDeleted,         // somebody deleted its pod
  kUnfit,           // it failed the check before the first step (spec.preflight); the coordinator tells it
};

enum class ObservationKind : std::uint8_t {
  kStreamEnded,  // detail: why
  kSilent,       // detail: for how long
  kKeepsView,    // it did not end a view when told to; detail: its number
  kTakesNoStep,  // detail: in which part of a step it is, for how long, and who waits
  kNotJoined,    // detail: within how long, and who else is missing
  kSaid,         // detail: its own error; of the three below, too
  kOutOfMemory,
  kNotFinite,
  kDataUnreadable,
  kStopped,        // it said that it was stopped; detail: why
  kBrokeProtocol,  // detail: how
  kPodEnded,       // detail: the cluster's own words, where they say more than that it ended
  kPodEndedEarly,  // the same, before it joined
  kPodDeleted,
  kNodeNotReady,
  kDiverged,     // detail: from whom, and when
  kOutOfView,    // detail: in which view it is, and what the others do
  kLostLink,     // it reports a peer; detail: which
  kPeerReports,  // peers report it; detail: how many, and the first one's reason
  kRefused,
  kUnfit,  // detail: by which test, and its figures
};

struct Observation {
  ObservationKind kind = ObservationKind::kStreamEnded;
  std::string detail;
  bool operator==(const Observation&) const = default;
  static void fields(auto&& visit, auto& x) {
    visit(NamedField{"kind", "StreamEnded, Silent, ..."}, x.kind);
    visit(NamedField{"detail"}, x.detail);
  }
};

// A member that was hit as a consequence.
struct Victim {
  Role role = Role::kWorker;
  int index = 0;
  Observation seen;
  std::optional<int> exit_code, signal;
  bool same = false;  // it failed by the same as the member at fault; `seen` has no detail then
  bool operator==(const Victim&) const = default;
  static void fields(auto&& visit, auto& x) {
    Observation::fields(visit, x.seen);
    visit(NamedField{"role"}, x.role);
    visit(NamedField{.name = "index", .always = true}, x.index);
    visit(NamedField{"exitCode"}, x.exit_code);
    visit(NamedField{"signal"}, x.signal);
    visit(NamedField{"same", "It failed by the same as the member at fault."}, x.same);
  }
};

inline constexpr std::size_t kMostVictims = 8;  // named one by one

struct Fault {
  FaultKind kind = FaultKind::kDead;
  Role role = Role::kWorker;
  int index = 0;
  int rank = -1;          // in the view; -1: in none
  std::string pod, host;  // empty: nobody knows
  std::int64_t pid = 0;
  std::optional<Step> step;  // the last known
  RestartCause cause = RestartCause::kSilent;
  std::optional<int> exit_code, signal;
  std::vector<Observation> evidence;  // the first one is what decided
  std::vector<Victim> victims;
  int more_victims = 0;  // beyond kMostVictims
  // The restart is counted as kSilent since then, and may yet get another cause: when the member fell silent
  // its pod ran, as far as anybody knew. A node that dies is told from a process that hangs only later.
  std::optional<WallTime> provisional_since;
  bool operator==(const Fault&) const = default;
  static void fields(auto&& visit, auto& x) {
    visit(NamedField{"kind", "Killed, Frozen, ..."}, x.kind);
    visit(NamedField{"role"}, x.role);
    visit(NamedField{.name = "index", .always = true}, x.index);
    visit(NamedField{.name = "rank", .about = "In the view; -1: in none.", .always = true}, x.rank);
    visit(NamedField{"pod"}, x.pod);
    visit(NamedField{"host"}, x.host);
    visit(NamedField{"pid"}, x.pid);
    visit(NamedField{"step", "The last known."}, x.step);
    visit(NamedField{"cause", "Exited, Killed, OOMKilled, ..."}, x.cause);
    visit(NamedField{"exitCode"}, x.exit_code);
    visit(NamedField{"signal"}, x.signal);
    visit(NamedField{"evidence", "What was seen; the first is what decided."}, x.evidence);
    visit(NamedField{"victims", "Members that were hit as a consequence."}, x.victims);
    visit(NamedField{"moreVictims"}, x.more_victims);
    visit(NamedField{"provisionalSince", "The cause may yet change."}, x.provisional_since);
  }
};

// Whether the member itself said that it failed, and how.
bool is_own_word(FaultKind kind);
bool is_own_word(ObservationKind seen);

// The names as they stand in the status: "NodeLost", "Frozen", "StreamEnded", ...
const char* name(RestartCause value);
const char* name(FaultKind value);
const char* name(ObservationKind value);

}  // namespace paceline::api

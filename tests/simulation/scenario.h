#pragma once

// A seed stands for a job, a cluster, and the faults that strike them.

#include <cstdint>
#include <optional>
#include <vector>

#include "controller/reconcile/job_store.h"
#include "tests/simulation/member_process.h"

namespace paceline::simulation {

enum class FaultKind : std::uint8_t {
  kKill,     // a member, or several at once, by signal 9
  kKillAll,  // all members
  kOutOfMemory,
  kFail,    // an error of a member's own: exit code 1
  kPause,   // a member, for at most two seconds
  kFreeze,  // a member, for long
  kHang,    // a member, in its own part of a step
  kDeletePod,
  kEvictPod,   // by the eviction API
  kLosePower,  // a node's
  kCutOffNode,
  kCutStream,  // all of a node's with the controllers, one way or both
  kCutData,    // between two nodes, one way
  kSlowNetwork,
  kCrashController,
  kCrashInPass,
  kPauseController,  // beyond its lease, perhaps in the middle of a pass
  kApiTrouble,       // calls fail, or work and lose their answer
  kLag,              // watches are late
  kListAgain,        // watches break
  kConflict,         // somebody else writes the job
  kJumpClock,
  kResize,
  kSuspend,   // and resume
  kRecreate,  // the job is deleted, and made again under its name
  // In stories with slow members alone: it takes several times as long for its part of a step.
  kSlowMember,
  kSlowNode,  // all that run there, and come there
};
inline constexpr int kFaultKinds = static_cast<int>(FaultKind::kSlowNode) + 1;
const char* name(FaultKind kind);

struct Fault {
  Duration at{};
  FaultKind kind = FaultKind::kKill;
};

struct Scenario {
  explicit Scenario(std::uint64_t seed);

  std::uint64_t seed;
  reconcile::StoredJob job;
  Training training;
  bool keeps_checkpoints = true;
  int nodes = 3, controllers = 1;
  std::vector<Fault> faults;           // by time
  std::vector<Fault> beside_handover;  // each time that one begins, so long after it
  Duration calm_after{};               // all is mended then
  bool must_succeed =
      false;  // the policies allow no other end, whatever the faults are; or no member is at fault
  bool harmless = false;     // nothing happens to a member: nobody starts again
  bool has_slow = false;     // members, which are to be replaced, or to have fewer samples
  bool undisturbed = false;  // but for that
  std::optional<int> room;   // so many pods run at once

 private:
  void check_members();        // before the first step
  void slow_down(Dice& dice);  // the job is one that slow members can be found in
  void follow_speed();
  void add_slow_members(Dice& dice, Duration length);
};

}  // namespace paceline::simulation

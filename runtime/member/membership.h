#pragma once

// The member's side of Attach (docs/protocol.md, Control): attach, views, heartbeats from a thread of its
// own, faults, leaving.
//
// Threads: the training thread owns it and calls wait_view() and leave(); the reports, status(),
// is_to_save(), newest_view(), draining() and saves_asked() may be called from any thread. The hooks run on
// the membership's thread, without locks held. When the coordinator goes away, training goes on: the
// membership re-attaches with back-off and jitter for `reattach_limit`, and only then ends. What it meets
// meanwhile, and before it is welcomed, it logs (trouble.h). Ends, as status() tells; whichever is first
// stays:
//   ABORTED            evicted; the message is the coordinator's reason
//   DATA_LOSS          evicted, and what this one holds must not be saved: others have it and go on, the
//                      members' weights differ, or a part went with a server
//   CANCELLED          evicted because the job is finished: exit code 0
//   UNAVAILABLE        the coordinator is gone for longer than the limit
// wait_view() and leave() return it too.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/ids.h"
#include "base/log.h"
#include "proto/paceline/v1/coordinator.pb.h"
#include "runtime/member/environment.h"
#include "runtime/member/progress.h"

namespace paceline::member {

// What Hello says beside the environment.
struct Presence {
  // Its process, whose counters are told; 0: this one; below: nothing is known of it.
  std::int64_t pid = 0;
  std::string host_id;  // collective::Address
  std::string local_socket;
  std::vector<std::string> tcp;
};

struct MembershipOptions {
  // After that without a coordinator: UNAVAILABLE. A limit in the coordinator's Welcome counts instead.
  Duration reattach_limit = std::chrono::seconds(2);
  Duration first_backoff =
      std::chrono::milliseconds(20);  // doubled up to last_backoff, times a random factor in [0.5, 1)
  Duration last_backoff = std::chrono::milliseconds(500);
  Logger logger = Logger::none();
};

class Membership {
 public:
  using CancelHook = std::function<void(const absl::Status&)>;
  using ViewHook = std::function<void(Generation)>;
  using CatchUpHook = std::function<void(const v1::CatchUp&)>;
  using PreflightHook = std::function<void(std::uint64_t)>;

  // Connects, says Hello, and waits for Welcome; retries until `deadline` while nobody listens. `clock`
  // outlives it and paces the heartbeats. The codes above, or DEADLINE_EXCEEDED with the last reason.
  static absl::StatusOr<std::unique_ptr<Membership>> attach(const Environment& environment,
                                                            const Presence& presence,
                                                            const MembershipOptions& options,
                                                            const Clock& clock, Deadline deadline);
  virtual ~Membership() = default;  // ends the stream without a goodbye if leave() wasn't called

  virtual const v1::Welcome& welcome() const = 0;
  virtual const std::string& member_id() const = 0;

  // The first view newer than `after`. DEADLINE_EXCEEDED, or why the membership ended.
  virtual absl::StatusOr<v1::View> wait_view(Generation after, Deadline deadline) = 0;
  // The newest word of a check before the first step that has come, once. Until it is taken,
  // wait_view() returns at once, with DEADLINE_EXCEEDED where there is no view.
  virtual std::optional<v1::Preflight> take_preflight() = 0;
  virtual void report_preflight(v1::PreflightResult result) = 0;  // the answer
  // The newest view's, of those that have come. 0: none.
  virtual Generation newest_view() const = 0;
  // The newest generation that is to be drained: finish the step under way, then wait_view(). 0: none. For an
  // observer, which is in no view: the training is over, unless 0. One atomic read.
  virtual Generation draining() const = 0;

  // How often a checkpoint was asked for; a request may count more than once. One atomic read.
  virtual std::uint64_t saves_asked() const = 0;

  virtual Progress& progress() = 0;  // the training thread's board
  // The next heartbeat goes at once, not at its time: for what would come too late then.
  virtual void beat_now() = 0;

  // "I lost my link to that peer": sent at once. Then wait for the coordinator's word: wait_view() returns a
  // new view, or the eviction.
  virtual void report_peer_fault(Generation generation, Step step, std::string_view peer_member_id,
                                 std::string_view reason) = 0;
  virtual void report_checkpoint(v1::CheckpointResult result) = 0;
  // From any thread: a newcomer's word on a CatchUp of this generation; empty: it holds the state.
  virtual void report_caught_up(Generation generation, std::string_view error) = 0;

  // OK while the membership lasts.
  virtual absl::Status status() const = 0;
  // The membership has ended, and this member is to save what it holds, whichever rank it was.
  virtual bool is_to_save() const = 0;
  // Called once, when the membership ends by itself (not by leave()): close the communicator there. At once,
  // from this thread, if it has ended. A later hook replaces an earlier one; after this returns the earlier
  // one isn't running.
  virtual void on_cancel(CancelHook hook) = 0;
  // Called at every view that comes from now on, with its generation: what belongs to an earlier one is over.
  // Else as on_cancel().
  virtual void on_view(ViewHook hook) = 0;
  // Called at every CatchUp that comes from now on. Else as on_view().
  virtual void on_catch_up(CatchUpHook hook) = 0;
  // Called at every word of a check that comes from now on, and for the one that nobody has taken, with its
  // number: nobody waits for the answer to an earlier one any more. Else as on_view().
  virtual void on_preflight(PreflightHook hook) = 0;

  // Waits for the coordinator until `deadline`, sends what the board still holds and the goodbye, and waits
  // until the coordinator has taken both: up to 20 s at least, since who stands still for a while (a machine
  // that was suspended) would else find a line that broke before it read them, and a member that is gone. No
  // hook is called afterwards. OK, DEADLINE_EXCEEDED, or why the membership had ended before.
  virtual absl::Status leave(const v1::Leaving& leaving, Deadline deadline) = 0;
};

}  // namespace paceline::member

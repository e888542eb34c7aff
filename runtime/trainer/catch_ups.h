#pragma once

// A member and the newcomers of its ring: it gives them its part of the state while it trains, and
// was one itself before its first view (runtime/catch_up).
//
// Threads: begin(), cancel() and close_earlier() are called by any thread, the rest by the training thread.

#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "base/log.h"
#include "proto/paceline/v1/coordinator.pb.h"
#include "runtime/catch_up/state_receiver.h"
#include "runtime/catch_up/state_sender.h"
#include "runtime/collective/fabric.h"
#include "runtime/member/membership.h"
#include "runtime/trainer/replica.h"

namespace paceline::trainer {

class CatchUps {
 public:
  // The arguments outlive it.
  CatchUps(member::Membership& membership, collective::Fabric& fabric, const Clock& clock,
           const Logger& logger);

  // From now on the state may be written to this replica, and nobody else uses it until enter().
  void offer(Replica* newcomer);
  // The coordinator's word. One of an earlier view than the newest is left out, as is one that comes to a
  // member after its first view.
  void begin(const v1::CatchUp& catch_up);
  // A newcomer is told that nobody waits for the state any more.
  void cancel();

  // Into this view: where this member was given the state, it waits for the last of it, until it has all of
  // it (true), or that can't be had any more (false), as when there is a newer view.
  std::optional<bool> enter(Generation view);
  // From any thread: of views before this one nothing is waited for any more.
  void close_earlier(Generation newest);
  // Behind every step: newcomers may be given the replica's state, until take_back(). `last`: the view ends
  // with that step.
  void step_applied(Replica& replica, bool last);
  // Before the gradient or the state is written.
  void take_back();
  // The newcomers of views before this one have what they need, or get it no more.
  void leave(Generation before);

 private:
  struct Sending {
    Generation generation;
    std::unique_ptr<catch_up::StateSender> sender;
  };
  struct State {
    Replica* newcomer = nullptr;
    std::shared_ptr<catch_up::StateReceiver> receiver;  // null: there is none
    std::vector<Sending> sending;
    std::optional<Generation> entering;  // finish() is waited for
  };
  void receive(collective::Group group);

  member::Membership& membership_;
  collective::Fabric& fabric_;
  const Clock& clock_;
  const Logger& logger_;
  Guarded<State> state_;
  bool lent_ = false;  // the training thread's
};

}  // namespace paceline::trainer

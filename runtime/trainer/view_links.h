#pragma once

// A view's links, with which a member waits for its peers, and what ends that: the end of its membership, a
// newer view, and a stop whose time is over. Each closes the links within a millisecond, and with them every
// wait.
//
// Threads: the hooks come from the membership's thread, and from StopRequest's; all else is the training
// thread's.

#include <functional>
#include <utility>

#include "absl/status/status.h"
#include "base/guarded.h"
#include "base/ids.h"
#include "runtime/collective/fabric.h"
#include "runtime/member/membership.h"
#include "runtime/trainer/catch_ups.h"
#include "runtime/trainer/stop_request.h"

namespace paceline::trainer {

class ViewLinks {
 public:
  // ABORTED, whatever the reason: to the peers, it is a member that went away.
  using Close = std::function<void(absl::Status)>;

  // All outlive it. `ring`: views end where there is a newer one.
  ViewLinks(member::Membership& membership, collective::Fabric& fabric, StopRequest& stop,
            CatchUps& catch_ups, bool ring);
  // No hook runs any more.
  ~ViewLinks();
  ViewLinks(const ViewLinks&) = delete;
  ViewLinks& operator=(const ViewLinks&) = delete;

  // The links of this view are there; `close` closes them, from any thread, perhaps before this returns.
  void adopt(Generation view, Close close);
  // There are none.
  void drop() { const Links gone = std::exchange(*links_.lock(), {}); }
  // Whether a newer view has come.
  bool is_superseded(Generation view) const { return ring_ && membership_.newest_view() > view; }

 private:
  void close(const absl::Status& reason);
  void close_earlier(Generation newest);

  struct Links {
    Generation generation;
    Close close;  // null: there are none
  };
  member::Membership& membership_;
  collective::Fabric& fabric_;
  StopRequest& stop_;
  CatchUps& catch_ups_;
  const bool ring_;
  Guarded<Links> links_;
};

}  // namespace paceline::trainer

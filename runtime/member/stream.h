#pragma once

// One try at an Attach stream, on a channel of its own. The only place of runtime/ that knows gRPC.

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "proto/paceline/v1/coordinator.pb.h"

namespace paceline::member {

inline constexpr std::size_t kMaxStreamQueue = 64;
// A connection over a network is given up when what was sent is not acknowledged for so long, and when a ping
// into its silence is not answered: so a member that was cut off for 3 s is back within the 5 s that the
// coordinator waits for it (docs/protocol.md, "Who is to blame").
inline constexpr Duration kDeafLimit = std::chrono::milliseconds(1500);
// Making one may take so long at first, and twice as long after each try that failed: where many come at once
// to a controller that has just begun, it has no time for all of them.
inline constexpr Duration kFirstConnectLimit = std::chrono::seconds(1);
inline constexpr Duration kLongestConnectLimit = std::chrono::seconds(6);

class Stream {
 public:
  // Called from gRPC's threads, one at a time, without locks held. `ended` is the last call.
  struct Handlers {
    std::function<void(const v1::CoordinatorMessage&)> message;
    std::function<void(const absl::Status&)> ended;
    // Just before it: another address to try, which the server named.
    std::function<void(const std::string&)> elsewhere = {};
  };

  // What the coordinator asks of a stream before its first message: the job's token. Of one with another
  // token it tells the job that it names of the pod.
  struct Caller {
    std::string token, job = {}, pod_uid = {};
  };

  static std::unique_ptr<Stream> open(const std::string& address, const Caller& caller, Handlers handlers,
                                      Duration connect_limit = kFirstConnectLimit);
  // Cancels, and returns when no handler runs any more: not from a handler.
  virtual ~Stream() = default;

  // Queues. False when kMaxStreamQueue messages wait already, or the stream has ended: the message is not
  // sent.
  virtual bool send(v1::MemberMessage message) = 0;
  // Nothing is queued or on its way: what was sent is in the transport's hands.
  virtual bool idle() const = 0;
  // No more sends: the coordinator is told after what is queued.
  virtual void half_close() = 0;
};

}  // namespace paceline::member

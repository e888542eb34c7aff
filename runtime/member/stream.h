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
// A connection over a network ends when sent bytes stay unacknowledged, or a ping stays unanswered, for so
// long. So a member that was cut off for 3 s is back within the 5 s that the coordinator waits for it
// (docs/protocol.md, "The root cause").
inline constexpr Duration kDeafLimit = std::chrono::milliseconds(1500);
// The first try to connect may take so long, and each further try twice as long: a controller that has just
// begun has no time for all members that come at once.
inline constexpr Duration kFirstConnectLimit = std::chrono::seconds(1);
inline constexpr Duration kLongestConnectLimit = std::chrono::seconds(6);

class Stream {
 public:
  // Called from gRPC's threads, one at a time, without locks held. `ended` is the last call.
  struct Handlers {
    std::function<void(const v1::CoordinatorMessage&)> message;
    std::function<void(const absl::Status&)> ended;
    // Called just before `ended` where the server named another address to try.
    std::function<void(const std::string&)> elsewhere = {};
  };

  // The coordinator checks the token before a stream's first message. It reports a pod with a wrong token to
  // the job that the stream names.
  struct Caller {
    std::string token, job = {}, pod_uid = {};
    std::string authority = {};  // PEM: TLS, with a coordinator whose certificate it signed; empty: without
  };

  static std::unique_ptr<Stream> open(const std::string& address, const Caller& caller, Handlers handlers,
                                      Duration connect_limit = kFirstConnectLimit);
  // Cancels the stream, and returns when no handler runs any more. Not to be called from a handler.
  virtual ~Stream() = default;

  // Queues the message. False, and it is not sent, when kMaxStreamQueue messages wait already or the stream
  // has ended.
  virtual bool send(v1::MemberMessage message) = 0;
  // True when no message is queued or being written: the transport has all of them.
  virtual bool idle() const = 0;
  // Ends sending: the coordinator is told behind the messages that are queued.
  virtual void half_close() = 0;
};

}  // namespace paceline::member

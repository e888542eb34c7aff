#pragma once

// One try at an Attach stream, on a channel of its own. The only place of runtime/ that knows gRPC.

#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "proto/paceline/v1/coordinator.pb.h"

namespace paceline::member {

inline constexpr std::size_t kMaxStreamQueue = 64;

class Stream {
 public:
  // Called from gRPC's threads, one at a time, without locks held. `ended` is the last call.
  struct Handlers {
    std::function<void(const v1::CoordinatorMessage&)> message;
    std::function<void(const absl::Status&)> ended;
    // Just before it: another address to try, which the server named.
    std::function<void(const std::string&)> elsewhere = {};
  };

  static std::unique_ptr<Stream> open(const std::string& address, const std::string& token,
                                      Handlers handlers);
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

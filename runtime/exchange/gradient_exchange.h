#pragma once

// How gradients meet: one interface for every strategy (all-reduce here; parameter servers, local steps, ...
// join it later).
//
// Use, once per step, by the training thread:
//   begin_step(step, late)
//   range_ready(begin, end)      as back-propagation finishes parts of the flat gradient, last layers first
//   finish(deadline)             returns when all ranges hold the sum over all members
// The gradient vector lives in registered memory that the caller allocated and gave at construction. Between
// begin_step and finish a range belongs to the caller until it is declared ready, and to the exchange
// afterwards. Where the gradient lies on a device (staged_exchange.h), ready is what the device will have
// computed once it has done the work that was added so far. Threads: all calls from one thread; close() from
// any. The exchange may have threads of its own. Errors: the communicator's; after the first, every call
// returns it. Guarantee: the sum's bits do not depend on arrival order or on how ranges were declared ready.

#include <cstddef>
#include <cstdint>
#include <functional>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/ids.h"

namespace paceline::exchange {

struct ExchangeTimes {
  Duration wait{};               // the training thread was blocked and a peer was not ready
  Duration transfer{};           // the training thread was blocked while bytes moved
  std::uint64_t bytes_sent = 0;  // of this step
};

class GradientExchange {
 public:
  virtual ~GradientExchange() = default;
  // `late`: how much longer than the collective's timeout the peers may take to come (rank 0 saves).
  virtual absl::Status begin_step(Step step, Duration late) = 0;
  // Elements [begin, end) of the flat gradient are final. Ranges of a step are disjoint and cover it by the
  // time of finish().
  virtual absl::Status range_ready(std::size_t begin, std::size_t end) = 0;
  // Until the device has computed what was declared: this member's own time, and no wait for the others.
  virtual absl::Status wait_for_device() { return absl::OkStatus(); }
  virtual absl::Status finish(Deadline deadline) = 0;
  // An exchange from device to device gives all members what rank `root` has in this vector of
  // the device's, between two steps. REQUIRES: no work is under way on it. FAILED_PRECONDITION: it does not
  // go so.
  virtual absl::Status broadcast(float* /*vector*/, std::size_t /*count*/, int /*root*/,
                                 Deadline /*deadline*/) {
    return absl::FailedPreconditionError("gradients go by way of the hosts' memory");
  }
  // `on_summed` hears within finish(), as more of the vector holds the sum: it does from element `from` on,
  // and in this step the exchange does not touch that any more. Not every exchange tells. To be set before
  // the first step; it may not call the exchange.
  using OnSummed = std::function<void(std::size_t from)>;
  virtual void set_on_summed(OnSummed /*on_summed*/) {}
  // Of the last finished step.
  virtual ExchangeTimes last_times() const = 0;
  virtual void close(absl::Status reason) = 0;
};

}  // namespace paceline::exchange

#pragma once

// The exchanges of one member's views, one after the other, and what goes from one to the next: the last
// one's communicator, kept (communicator.h) so that a smaller view's can be shrunk from it. What is kept is
// released when the next view's is there, by let_go(), by its limit, or with this object.
//
// open() and let_go() are called by one thread at a time; exchanges end on any thread, also after this
// object.

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "base/log.h"
#include "runtime/cuda/stream.h"
#include "runtime/exchange/device_exchange.h"
#include "runtime/nccl/communicator.h"
#include "runtime/nccl/nccl_exchange.h"

namespace paceline::nccl {

class ViewExchanges {
 public:
  // `on_stuck`: Setup.on_stuck (communicator.h), of all communicators; the process must end.
  // `least_bucket_bytes`: nccl_exchange.h.
  ViewExchanges(std::shared_ptr<const Library> library, Logger log, std::function<void()> on_stuck,
                Limits limits = {}, std::size_t least_bucket_bytes = kLeastBucketBytes);

  // As exchange::OpenDeviceExchange: where it fails, nothing of NCCL's is left when it returns. Its errors
  // say what may help. `stream`: of parts.queue.
  absl::StatusOr<exchange::DeviceExchange> open(exchange::DeviceExchangeParts parts, cuda::Stream& stream,
                                                Deadline deadline);
  // A view that has no such exchange: nothing is kept.
  void let_go();

 private:
  class Last;

  const std::shared_ptr<const Library> library_;
  const Logger log_;
  const std::function<void()> on_stuck_;
  const Limits limits_;
  const std::size_t least_bucket_bytes_;
  const std::shared_ptr<Last> last_;
};

}  // namespace paceline::nccl

#pragma once

// How a program's device exchanges gradients with other members' by itself, where it can (runtime/nccl/): as
// a function, so that the trainer knows no device.

#include <cstddef>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/collective/communicator.h"
#include "runtime/exchange/gradient_exchange.h"
#include "runtime/tensor/device.h"

namespace paceline::exchange {

// All but `own` outlives the exchange, as the fabric of `own` does; the clock outlives the function that
// opened it.
struct DeviceExchangeParts {
  const v1::ExchangeSpec& spec;
  const Clock& clock;
  collective::Communicator& links;  // the view's: for what travels with the gradient
  // Another of the same view, for nobody else; a peer's end ends it.
  std::unique_ptr<collective::Communicator> own;
  tensor::Queue& queue;  // to which the work is added that computes the gradient
  float* gradient;       // of the device's memory
  std::size_t elements;
  std::span<float> behind;  // the host's: elements [elements, elements + behind.size()) of what is exchanged
};

struct DeviceExchange {
  std::unique_ptr<GradientExchange> exchange;
  std::string how;  // by what; for the log, may be empty
};

// Called by all members of a view; `deadline` is for its opening, in which `links` has no part. Errors:
// FAILED_PRECONDITION, on all of them: their devices can't be served (two members have one GPU, versions
// differ). Else it may fail for one member alone: of another's failure or end the error names that rank
// (collective/fault.h). The members must tell each other by `links`: where one has it not open, all give up
// what they have, and the gradient may go by way of the host. It may keep things from one view's to the
// next's.
using OpenDeviceExchange =
    std::function<absl::StatusOr<DeviceExchange>(DeviceExchangeParts parts, Deadline deadline)>;

}  // namespace paceline::exchange

#pragma once

// The exchange of a gradient that lies on GPUs, by NCCL: buckets are given to the communicator as the
// backward pass completes them, and are reduced on its own stream while the pass goes on. What travels with
// the gradient goes over the view's links of the host.
//
// A bucket is enqueued when the host has seen that it is complete, in wait_for_device(): so its time counts
// from there, and no kernel of NCCL takes multiprocessors from back-propagation to wait for it. Buckets and
// their order are those of exchange/buckets.h, of spec.bucket_bytes, or kLeastBucketBytes where that is more.
// finish() waits for the last one on the host: after an abort the GPU goes on behind it, with what is no sum,
// and an update that was given to the stream already could not be taken back from the weights.
// Nothing is allocated after the first step. Threads, errors: exchange/gradient_exchange.h; the GPU's own are
// INTERNAL. When the exchange ends, `on_end` gets its communicator.

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "runtime/cuda/stream.h"
#include "runtime/exchange/device_exchange.h"
#include "runtime/nccl/communicator.h"

namespace paceline::nccl {

// Each bucket costs the hosts an agreement and NCCL a launch, by estimate a tenth of a millisecond, whatever
// its size; NVLink moves so many bytes in about as long.
inline constexpr std::size_t kLeastBucketBytes = std::size_t{32} << 20;

// `stream`: of parts.queue; `communicator` was made with parts.own, which is null here. INVALID_ARGUMENT, as
// make_exchange(). `least_bucket_bytes`: the same on all members, as buckets are.
absl::StatusOr<std::unique_ptr<exchange::GradientExchange>> make_nccl_exchange(
    exchange::DeviceExchangeParts parts, cuda::Stream& stream, std::unique_ptr<NcclCommunicator> communicator,
    std::function<void(std::unique_ptr<NcclCommunicator>)> on_end,
    std::size_t least_bucket_bytes = kLeastBucketBytes);

}  // namespace paceline::nccl

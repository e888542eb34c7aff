#pragma once

// The exchange of a gradient that lies on a device, by way of the host: ranges are copied to the host's
// vector as the device computes them, what is complete there is exchanged as any other, and the sum is copied
// back, bucket by bucket, ahead of whatever is added to the queue after finish(). For members that NCCL can't
// serve: several of one GPU. A member that is alone copies nothing.
//
// Copies go by a queue of their own, beside the work that computes the gradient: each follows what it waits
// for, and nothing else. What of the sum is there (GradientExchange::set_on_summed) is on its way to the
// device while the next bucket is reduced.
//
// The host's vector is the gradient and, behind it, what travels with it, which is the caller's as without a
// device. Nothing is allocated after the first step. Threads, errors: gradient_exchange.h, and the device's
// as INTERNAL: no peer is to blame. What goes wrong on the way back is told when the others have the sum.

#include <memory>
#include <span>

#include "runtime/exchange/gradient_exchange.h"
#include "runtime/tensor/device.h"

namespace paceline::exchange {

// `host` is an exchange of `staging`, whose first `elements` are the gradient's; `gradient` is of the
// device's memory, and the work that computes it is added to `queue`. All outlive it but `host` and `side`:
// a queue of the same device for nobody else, null where the member is alone, which ends what it has under
// way when it goes.
std::unique_ptr<GradientExchange> make_staged_exchange(std::unique_ptr<GradientExchange> host,
                                                       tensor::Queue& queue,
                                                       std::unique_ptr<tensor::Queue> side, float* gradient,
                                                       std::size_t elements, std::span<float> staging);

}  // namespace paceline::exchange

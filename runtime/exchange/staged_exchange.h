#pragma once

// The exchange of a gradient that lies on a device, by way of the host: ranges are copied to the host's
// vector as the device computes them, what is complete there is exchanged as any other, and the sum is copied
// back, ahead of whatever is added to the queue next. For members that NCCL can't serve: several of one GPU.
// A member that is alone copies nothing.
//
// The host's vector is the gradient and, behind it, what travels with it, which is the caller's as without a
// device. Nothing is allocated after the first step. Threads, errors: gradient_exchange.h, and the device's
// as INTERNAL: no peer is to blame.

#include <memory>
#include <span>

#include "runtime/exchange/gradient_exchange.h"
#include "runtime/tensor/device.h"

namespace paceline::exchange {

// `host` is an exchange of `staging`, whose first `elements` are the gradient's; `gradient` is of the
// device's memory, and the work that computes it is added to `queue`. All outlive it but `host`.
std::unique_ptr<GradientExchange> make_staged_exchange(std::unique_ptr<GradientExchange> host,
                                                       tensor::Queue& queue, float* gradient,
                                                       std::size_t elements, std::span<float> staging,
                                                       bool alone);

}  // namespace paceline::exchange

#pragma once

// Synchronous all-reduce of the gradient, bucket by bucket, while back-propagation goes on (wait-free
// back-propagation: Zhang et al., Poseidon, 2017; Li et al., PyTorch DDP, 2020).
//
// A communication thread reduces complete buckets in the order of their numbers; what is left when finish()
// is called, the caller reduces itself, after at most one bucket of the thread's. The thread is never woken
// for the last bucket: a small model has only that, and pays for no hand-over. Without overlap there is no
// thread, and finish() reduces everything. The buckets are the same either way, and with them the sum's bits.
// Nothing is allocated after construction. The collective's timeout counts for each bucket anew; finish()
// also ends at its own deadline. Threads, errors: gradient_exchange.h.

#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/collective/communicator.h"
#include "runtime/exchange/gradient_exchange.h"

namespace paceline::exchange {

// INVALID_ARGUMENT: bucket_bytes or timeout_ms isn't above 0.
absl::Status check_spec(const v1::ExchangeSpec& spec);

// INVALID_ARGUMENT: check_spec(), or the gradient is empty.
absl::StatusOr<std::unique_ptr<GradientExchange>> make_all_reduce_exchange(
    const v1::ExchangeSpec& spec, collective::Communicator& communicator, std::span<float> gradient,
    const Clock& clock);

}  // namespace paceline::exchange

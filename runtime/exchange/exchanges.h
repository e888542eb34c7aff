#pragma once

// The strategies that there are, by name. A new one adds its row to exchanges.cc.

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/collective/communicator.h"
#include "runtime/exchange/gradient_exchange.h"

namespace paceline::exchange {

// "AllReduce" is what an ExchangeSpec means that names no other.
inline constexpr char kAllReduce[] = "AllReduce";

std::vector<std::string_view> strategies();

// An exchange for one view. `communicator`, `gradient` (registered memory, else it is copied on its way) and
// `clock` outlive it. INVALID_ARGUMENT: an unknown strategy (the message lists those known), or a field out
// of range.
absl::StatusOr<std::unique_ptr<GradientExchange>> make_exchange(std::string_view strategy,
                                                                const v1::ExchangeSpec& spec,
                                                                collective::Communicator& communicator,
                                                                std::span<float> gradient,
                                                                const Clock& clock);

}  // namespace paceline::exchange

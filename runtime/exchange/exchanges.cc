#include "runtime/exchange/exchanges.h"

#include <array>

#include "base/status.h"
#include "runtime/exchange/all_reduce_exchange.h"

namespace paceline::exchange {

namespace {

using Maker = absl::StatusOr<std::unique_ptr<GradientExchange>> (*)(const v1::ExchangeSpec&,
                                                                    collective::Communicator&,
                                                                    std::span<float>, const Clock&);
struct Row {
  std::string_view name;
  Maker make;
};
constexpr std::array kRows = {Row{kAllReduce, make_all_reduce_exchange}};

}  // namespace

std::vector<std::string_view> strategies() {
  std::vector<std::string_view> names;
  for (const Row& row : kRows) names.push_back(row.name);
  return names;
}

absl::StatusOr<std::unique_ptr<GradientExchange>> make_exchange(std::string_view strategy,
                                                                const v1::ExchangeSpec& spec,
                                                                collective::Communicator& communicator,
                                                                std::span<float> gradient,
                                                                const Clock& clock) {
  std::string known;
  for (const Row& row : kRows) {
    if (row.name == strategy) return row.make(spec, communicator, gradient, clock);
    known += str_cat(known.empty() ? "" : ", ", row.name);
  }
  return absl::InvalidArgumentError(str_cat("strategy '", strategy, "' is unknown; allowed: ", known));
}

}  // namespace paceline::exchange

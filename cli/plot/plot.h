#pragma once

// `paceline plot`: a run's metrics as one SVG picture: loss, accuracy where there is one, and the time of a
// step by member. It follows the viewer's light or dark setting. Pure: the same metrics give the same text.

#include <cstddef>
#include <string>
#include <string_view>

#include "cli/plot/metrics.h"

namespace paceline::cli {

// Of more members than this, the slowest on average are drawn.
inline constexpr std::size_t kMaxPlottedMembers = 8;

std::string plot_svg(const RunMetrics& metrics, std::string_view title);

}  // namespace paceline::cli

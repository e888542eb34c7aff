#pragma once

// Charts one below the other as one SVG file, which follows the viewer's light or dark setting. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "cli/plot/chart.h"

namespace paceline::cli {

std::string picture(std::string_view title, const std::vector<Chart>& charts);

}  // namespace paceline::cli

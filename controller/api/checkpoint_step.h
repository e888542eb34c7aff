#pragma once

// What a checkpoint's path tells (docs/checkpoints.md). Pure.

#include <optional>
#include <string_view>

#include "base/ids.h"

namespace paceline::api {

// The updates in it: its folder's name is "step-000000123". Nothing where it is another name.
std::optional<Step> checkpoint_step(std::string_view path);

}  // namespace paceline::api

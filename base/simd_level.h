#pragma once

// The vector instructions that a version of a loop uses. Which of them a processor has is asked where the
// loops are: each set of loops needs other parts of a level.

#include <cstdint>

namespace paceline {

enum class SimdLevel : std::uint8_t { kPortable = 0, kAvx2, kAvx512 };
const char* simd_level_name(SimdLevel level);

}  // namespace paceline

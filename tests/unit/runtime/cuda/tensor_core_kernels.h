#pragma once

#include <cstdint>

namespace paceline::cuda {

struct TensorCoreParams {
  const std::uint32_t* in;
  std::uint32_t* out;
};

}  // namespace paceline::cuda

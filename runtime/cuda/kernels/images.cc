#include "runtime/cuda/kernels/images.h"

// Defined by cmake/PacelineCuda.cmake.
#define PACELINE_IMAGE(name)                                                               \
  extern "C" const std::byte paceline_image_##name[], paceline_image_##name##_end[];       \
  std::span<const std::byte> paceline::cuda::name##_image() {                              \
    return std::span<const std::byte>(paceline_image_##name, paceline_image_##name##_end); \
  }

PACELINE_IMAGE(attention)
PACELINE_IMAGE(cached_attention)
PACELINE_IMAGE(conversion)
PACELINE_IMAGE(cross_entropy)
PACELINE_IMAGE(elementwise)
PACELINE_IMAGE(embedding)
PACELINE_IMAGE(flash_attention)
PACELINE_IMAGE(layer_norm)
PACELINE_IMAGE(optimizer)
PACELINE_IMAGE(reduce)
PACELINE_IMAGE(small_losses)
PACELINE_IMAGE(weights_hash)
PACELINE_IMAGE(windows)

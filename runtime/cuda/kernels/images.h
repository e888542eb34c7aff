#pragma once

// The kernels of this folder as what a driver loads: one image for each source, with machine code for the
// GPUs that the build names and PTX for newer ones. In the program's read-only data.

#include <cstddef>
#include <span>

namespace paceline::cuda {

std::span<const std::byte> attention_image();
std::span<const std::byte> cached_attention_image();
std::span<const std::byte> conversion_image();
std::span<const std::byte> cross_entropy_image();
std::span<const std::byte> elementwise_image();
std::span<const std::byte> embedding_image();
std::span<const std::byte> flash_attention_image();
std::span<const std::byte> layer_norm_image();
std::span<const std::byte> optimizer_image();
std::span<const std::byte> reduce_image();
std::span<const std::byte> small_losses_image();
std::span<const std::byte> weights_hash_image();
std::span<const std::byte> windows_image();

}  // namespace paceline::cuda

#pragma once

// All kernels of a GPU, loaded once into its context. Thread-safe.

#include <memory>

#include "absl/status/statusor.h"
#include "runtime/cuda/attention.h"
#include "runtime/cuda/cached_attention.h"
#include "runtime/cuda/columns.h"
#include "runtime/cuda/context.h"
#include "runtime/cuda/conversion.h"
#include "runtime/cuda/cross_entropy.h"
#include "runtime/cuda/elementwise.h"
#include "runtime/cuda/embedding.h"
#include "runtime/cuda/layer_norm.h"
#include "runtime/cuda/small_losses.h"
#include "runtime/cuda/windows.h"

namespace paceline::tensor::gpu {

struct Kernels {
  static absl::StatusOr<std::unique_ptr<const Kernels>> load(std::shared_ptr<const cuda::Context> context);

  cuda::Conversion conversion;
  cuda::Elementwise elementwise;
  std::unique_ptr<const cuda::Columns> columns;
  cuda::LayerNorm layer_norm;  // refers to `columns`
  cuda::CrossEntropy cross_entropy;
  cuda::Embedding embedding;
  cuda::Windows windows;
  cuda::Attention attention;
  cuda::CachedAttention cached_attention;
  cuda::SmallLosses small_losses;
};

}  // namespace paceline::tensor::gpu

#pragma once

// The bodies of all kernels and their table. Included once by each level_*.cc, which is compiled with that
// level's flags.
//
// Everything below body/ lies in an unnamed namespace and calls no inline function of a library: a function
// shared between translation units could be linked in its AVX-512 form and run on a processor without it.

#include "runtime/tensor/cpu/kernels/body/attention.h"
#include "runtime/tensor/cpu/kernels/body/cached_attention.h"
#include "runtime/tensor/cpu/kernels/body/optimizer.h"
#include "runtime/tensor/cpu/kernels/kernels.h"

namespace paceline::tensor::cpu {
namespace {

constexpr Kernels make_table(SimdLevel level) {
  return Kernels{
      .level = level,
      .squared_norm = squared_norm,
      .scale = scale,
      .add = add,
      .to_bf16 = to_bf16,
      .from_bf16 = from_bf16,
      .add_bias = add_bias,
      .column_sums = column_sums,
      .relu = relu,
      .relu_backward = relu_backward,
      .tanh = tanh_forward,
      .tanh_backward = tanh_backward,
      .gelu = gelu,
      .gelu_backward = gelu_backward,
      .layer_norm = layer_norm,
      .layer_norm_backward = layer_norm_backward,
      .cross_entropy = cross_entropy,
      .cross_entropy_gradient = cross_entropy_gradient,
      .embed = embed,
      .embed_backward = embed_backward,
      .attention = attention,
      .attention_backward = attention_backward,
      .cached_attention = cached_attention,
      .sgd = sgd,
      .adam = adam,
      .adagrad = adagrad,
      .ftrl = ftrl,
      .compensate = compensate,
  };
}

}  // namespace
}  // namespace paceline::tensor::cpu

#include "runtime/pserver/updater.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/collective/reduce.h"
#include "runtime/tensor/cpu/kernels/kernels.h"

namespace paceline::pserver {

namespace {

// Slices lie one behind the other in the slab: all before `end` is made.
void publish(MadeCount* made, std::size_t end) {
  if (made != nullptr) made->store(end, std::memory_order_release);
}

}  // namespace

Updater::Updater(std::span<const Slice> slices, std::size_t elements, float compensation)
    : slices_(slices), elements_(elements), compensation_(compensation), sum_(kBlock), late_(kBlock) {
  constexpr std::size_t kExpectedSources = 256;
  inputs_.reserve(kExpectedSources);
}

template <typename Body>
void Updater::each_block(Body body) {
  for (const Slice& slice : slices_) {
    for (std::size_t at = 0; at < slice.count; at += kBlock) {
      body(slice, at, std::min(kBlock, slice.count - at));
    }
  }
}

const float* Updater::sum_block(std::span<const GradientSource> sources, const Slice& slice, std::size_t at,
                                std::size_t count, const float* from, float* sum) {
  const auto start = [&](const GradientSource& source) {
    return source.data + (source.flat ? slice.begin : slice.slab) + at;
  };
  const auto add = [&](std::span<const std::byte* const> inputs) {
    const std::array<std::byte*, 1> outputs = {reinterpret_cast<std::byte*>(sum)};
    collective::reduce({.outputs = outputs, .inputs = inputs, .count = count});
  };
  const bool late =
      std::any_of(sources.begin(), sources.end(), [](const GradientSource& s) { return s.read != nullptr; });
  if (!late && sources.size() == 1) return start(sources[0]);
  if (!late) {
    inputs_.clear();
    for (const GradientSource& source : sources) {
      inputs_.push_back(reinterpret_cast<const std::byte*>(start(source)));
    }
    add(inputs_);
    return sum;
  }
  const std::size_t slab = slice.slab + at;
  for (std::size_t k = 0; k < sources.size(); ++k) {
    float* const to = k == 0 ? sum : late_.data();
    if (sources[k].read != nullptr) {
      tensor::cpu::kernels().compensate(compensation_, start(sources[k]), from + slab, sources[k].read + slab,
                                        to, count);
    } else {
      std::memcpy(to, start(sources[k]), count * sizeof(float));
    }
    const std::array<const std::byte*, 2> both = {reinterpret_cast<const std::byte*>(sum),
                                                  reinterpret_cast<const std::byte*>(to)};
    if (k > 0) add(both);
  }
  return sum;
}

void Updater::update(std::span<const GradientSource> sources, std::span<const float> from,
                     std::span<float> to, float factor, double learning_rate, optimizer::Optimizer& optimizer,
                     MadeCount* made) {
  optimizer.begin_step(learning_rate);
  each_block([&](const Slice& slice, std::size_t at, std::size_t count) {
    const std::size_t slab = slice.slab + at;
    const float* const gradient = sum_block(sources, slice, at, count, from.data(), sum_.data());
    const std::span<float> weights = to.subspan(slab, count);
    if (from.data() != to.data()) std::memcpy(weights.data(), from.data() + slab, count * sizeof(float));
    optimizer.step_part(slab, weights, {gradient, count}, factor);
    publish(made, slab + count);
  });
}

double Updater::sum(std::span<const GradientSource> sources, std::span<const float> from) {
  whole_.resize(elements_);
  double squares = 0;
  each_block([&](const Slice& slice, std::size_t at, std::size_t count) {
    float* const sum = whole_.data() + slice.slab + at;
    const float* const gradient = sum_block(sources, slice, at, count, from.data(), sum);
    if (gradient != sum) std::memcpy(sum, gradient, count * sizeof(float));
    squares += tensor::cpu::kernels().squared_norm(sum, count);
  });
  return squares;
}

void Updater::step(std::span<const float> from, std::span<float> to, float factor, double learning_rate,
                   optimizer::Optimizer& optimizer, MadeCount* made) {
  optimizer.begin_step(learning_rate);
  each_block([&](const Slice& slice, std::size_t at, std::size_t count) {
    const std::size_t slab = slice.slab + at;
    const std::span<float> weights = to.subspan(slab, count);
    if (from.data() != to.data()) std::memcpy(weights.data(), from.data() + slab, count * sizeof(float));
    optimizer.step_part(slab, weights, {whole_.data() + slab, count}, factor);
    publish(made, slab + count);
  });
}

}  // namespace paceline::pserver

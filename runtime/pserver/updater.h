#pragma once

// Sums the gradients of an update over a server's slices, in the order given, and steps the optimiser: block
// by block, so that a block stays in the processor's second-level cache from the first addition to the last
// store. The sum of a block is that of collective::reduce in fp32, so the bits are those of an all-reduce of
// the same gradients. One thread; allocates in its constructor alone, but for the whole sum that clipping
// needs.

#include <cstddef>
#include <span>
#include <vector>

#include "runtime/optimizer/optimizer.h"
#include "runtime/pserver/read_counts.h"
#include "runtime/pserver/shard_map.h"

namespace paceline::pserver {

// A gradient where it lies.
struct GradientSource {
  const float* data = nullptr;
  bool flat = false;            // as long as the whole weights; else as the slab
  const float* read = nullptr;  // the slab's weights that it was computed with: compensated; null: as it is
};

class Updater {
 public:
  // `slices` outlive it. `compensation`: what g * g * (w - w_read) counts (kernels.h, compensate).
  Updater(std::span<const Slice> slices, std::size_t elements, float compensation);

  // One optimiser step with the sum of `sources`, times `factor`: from the weights `from` into `to`, which
  // may be the same. REQUIRES: a source. `made`, where it is not null, rises by each block that is done.
  void update(std::span<const GradientSource> sources, std::span<const float> from, std::span<float> to,
              float factor, double learning_rate, optimizer::Optimizer& optimizer, MadeCount* made);

  // The same in two passes: the sum, of which it returns the sum of squares; then the step.
  double sum(std::span<const GradientSource> sources, std::span<const float> from);
  void step(std::span<const float> from, std::span<float> to, float factor, double learning_rate,
            optimizer::Optimizer& optimizer, MadeCount* made);

  static constexpr std::size_t kBlock = 8192;  // elements

 private:
  // The sum over [at, at + count) of a slice: in `sum`, or where the only source has it.
  const float* sum_block(std::span<const GradientSource> sources, const Slice& slice, std::size_t at,
                         std::size_t count, const float* from, float* sum);
  template <typename Body>
  void each_block(Body body);

  const std::span<const Slice> slices_;
  const std::size_t elements_;
  const float compensation_;
  std::vector<float> sum_, late_;  // of one block
  std::vector<float> whole_;       // sum() to step()
  std::vector<const std::byte*> inputs_;
};

}  // namespace paceline::pserver

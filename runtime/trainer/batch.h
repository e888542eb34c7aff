#pragma once

// Between a data set's batches and a program's memory.

#include <algorithm>
#include <cstdint>

#include "runtime/data/dataset.h"
#include "runtime/data/prefetcher.h"
#include "runtime/tensor/program.h"

namespace paceline::trainer {

// The first `rows` samples of a program's batch memory, as a data set fills them.
inline data::BatchView batch_view(const tensor::BatchMemory& memory, const data::SampleShape& shape,
                                  std::int64_t rows) {
  const auto elements = static_cast<std::size_t>(rows * shape.elements());
  const auto labels = static_cast<std::size_t>(rows * shape.labels);
  if (shape.kind == data::InputKind::kTokens)
    return {{}, memory.tokens.first(elements), memory.labels.first(labels)};
  return {memory.inputs.first(elements), {}, memory.labels.first(labels)};
}

// Rows [begin, begin + rows) of `batch` into the program's memory.
inline void copy_rows(const data::Batch& batch, std::int64_t begin, std::int64_t rows,
                      const data::SampleShape& shape, const tensor::BatchMemory& memory) {
  const auto part = [&](auto from, std::int64_t per_row, auto to) {
    if (from.empty()) return;
    const auto source =
        from.subspan(static_cast<std::size_t>(begin * per_row), static_cast<std::size_t>(rows * per_row));
    std::copy(source.begin(), source.end(), to.begin());
  };
  part(batch.inputs, shape.elements(), memory.inputs);
  part(batch.tokens, shape.elements(), memory.tokens);
  part(batch.labels, shape.labels, memory.labels);
}

}  // namespace paceline::trainer

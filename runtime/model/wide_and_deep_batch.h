#pragma once

// The sparse half of one batch of wide-and-deep: which rows it needs, from their numbers to the dense
// program's inputs, and from the program's gradients back to one gradient for each row.
//
//   batch.look_up(tokens);                        // ids(t): pull these rows into rows(t)
//   batch.clear_gradients();
//   for each pass over samples [begin, begin + n):
//     batch.gather(begin, n, program.batch());  program.forward(n);  program.backward(...);
//     batch.scatter(begin, n, program.batch());
//                                                 // gradients(t): push these
//
// A row's gradient is the sum over its occurrences, in the order of the samples; ids rise. Gradients need a
// place (place_gradients()) before they are scattered to or asked for; who only evaluates has none.
// One thread; allocates only in its making, for the most rows that so many samples may need (needs_of()).

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "runtime/model/lookups.h"
#include "runtime/model/wide_and_deep.h"
#include "runtime/tensor/program.h"

namespace paceline::model {

// The id of a combination of values, which have ids of their own (base/category.h), in the wide table;
// `cross` is the cross's number, from 0.
std::uint64_t cross_id(std::int64_t cross, std::span<const std::uint64_t> values);

class WideAndDeepBatch {
 public:
  // std::bad_alloc: there is no memory for bytes().
  WideAndDeepBatch(WideAndDeepShape shape, std::int64_t max_samples);
  static std::uint64_t bytes(const WideAndDeepShape& shape, std::int64_t max_samples);

  // Gradients go to `memory` from now on, which outlives this: the caller may have to send them from there.
  // REQUIRES: max_floats(table) of them.
  void place_gradients(std::size_t table, std::span<float> memory);
  std::size_t max_floats(std::size_t table) const { return tables_[table].max_floats; }

  // Of these samples, one after the other. REQUIRES: at most max_samples; no value is negative, or beyond
  // what the shape says of its field.
  void look_up(std::span<const std::int32_t> tokens);

  std::span<const std::uint64_t> ids(std::size_t table) const { return tables_[table].lookups.ids(); }
  std::span<float> rows(std::size_t table) { return {tables_[table].rows.get(), used_floats(table)}; }
  std::span<float> gradients(std::size_t table);

  void clear_gradients();  // that have a place
  // Inputs and offsets of samples [begin, begin + count).
  void gather(std::int64_t begin, std::int64_t count, const tensor::BatchMemory& memory) const;
  // Adds the gradients that the program left for them.
  void scatter(std::int64_t begin, std::int64_t count, const tensor::BatchMemory& memory);

 private:
  struct Table {
    Table(std::int64_t max_occurrences, std::int64_t max_rows, std::int64_t row_width);
    const std::size_t width, max_floats;
    Lookups lookups;
    std::unique_ptr<float[]> rows;  // of max_floats; nobody reads what was not pulled
    std::span<float> gradients;     // somebody else's; empty: they have no place
  };
  std::size_t used_floats(std::size_t table) const { return ids(table).size() * tables_[table].width; }
  std::span<const std::uint32_t> occurrences(const Table& table, std::int64_t begin, std::int64_t count,
                                             std::size_t per_sample) const;

  const WideAndDeepShape shape_;
  const std::size_t fields_, wide_per_sample_;
  std::vector<Table> tables_;
  std::vector<std::uint64_t> sample_ids_, cross_ids_;  // of the sample at hand
};

}  // namespace paceline::model

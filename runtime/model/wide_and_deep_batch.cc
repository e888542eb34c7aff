#include "runtime/model/wide_and_deep_batch.h"

#include <algorithm>
#include <utility>

#include "base/category.h"
#include "base/check.h"
#include "base/rng.h"

namespace paceline::model {

std::uint64_t cross_id(std::int64_t cross, std::span<const std::uint64_t> values) {
  std::uint64_t id = mix64(~static_cast<std::uint64_t>(cross));
  for (const std::uint64_t value : values) id = mix64(id * 0x9e3779b97f4a7c15U + value);
  return id;
}

WideAndDeepBatch::Table::Table(std::int64_t max_occurrences, std::int64_t max_rows, std::int64_t row_width)
    : width(static_cast<std::size_t>(row_width)),
      max_floats(static_cast<std::size_t>(max_rows) * width),
      lookups(max_occurrences),
      rows(std::make_unique_for_overwrite<float[]>(max_floats)) {}

WideAndDeepBatch::WideAndDeepBatch(WideAndDeepShape shape, std::int64_t max_samples)
    : shape_(std::move(shape)),
      fields_(static_cast<std::size_t>(shape_.fields)),
      wide_per_sample_(fields_ + shape_.crosses.size()),
      sample_ids_(fields_) {
  const SampleNeeds needs = needs_of(shape_, max_samples);
  tables_.reserve(kTables);
  tables_.emplace_back(needs.lookups, needs.rows[kWideTable], 1);
  tables_.emplace_back(max_samples * shape_.fields, needs.rows[kDeepTable], shape_.embedding);
  std::size_t longest = 0;
  for (const auto& cross : shape_.crosses) longest = std::max(longest, cross.size());
  cross_ids_.reserve(longest);
}

std::uint64_t WideAndDeepBatch::bytes(const WideAndDeepShape& shape, std::int64_t max_samples) {
  const SampleNeeds needs = needs_of(shape, max_samples);
  return static_cast<std::uint64_t>(needs.floats) * sizeof(float) + Lookups::bytes(needs.lookups) +
         Lookups::bytes(max_samples * shape.fields);
}

void WideAndDeepBatch::place_gradients(std::size_t table, std::span<float> memory) {
  Table& t = tables_[table];
  PL_CHECK(memory.size() == t.max_floats, "there is room for as many gradients as for rows");
  t.gradients = memory;
}

std::span<float> WideAndDeepBatch::gradients(std::size_t table) {
  PL_CHECK(!tables_[table].gradients.empty(), "gradients have a place");
  return tables_[table].gradients.first(used_floats(table));
}

void WideAndDeepBatch::look_up(std::span<const std::int32_t> tokens) {
  PL_CHECK(tokens.size() % fields_ == 0, "a sample has a token for each field");
  for (Table& table : tables_) table.lookups.clear();
  for (std::size_t begin = 0; begin < tokens.size(); begin += fields_) {
    for (std::size_t f = 0; f < fields_; ++f) {
      PL_CHECK(tokens[begin + f] >= 0, "a field's value is not negative");
      sample_ids_[f] = category_id({static_cast<std::int64_t>(f), tokens[begin + f]});
      tables_[kWideTable].lookups.add(sample_ids_[f]);
      tables_[kDeepTable].lookups.add(sample_ids_[f]);
    }
    for (std::size_t c = 0; c < shape_.crosses.size(); ++c) {
      cross_ids_.clear();
      for (const std::int64_t field : shape_.crosses[c])
        cross_ids_.push_back(sample_ids_[static_cast<std::size_t>(field)]);
      tables_[kWideTable].lookups.add(cross_id(static_cast<std::int64_t>(c), cross_ids_));
    }
  }
  for (Table& table : tables_) {
    table.lookups.finish();
    PL_CHECK(table.lookups.ids().size() * table.width <= table.max_floats,
             "a field's values are as the shape says");
  }
}

void WideAndDeepBatch::clear_gradients() {
  for (std::size_t t = 0; t < kTables; ++t) {
    if (tables_[t].gradients.empty()) continue;
    const std::span<float> values = gradients(t);
    std::fill(values.begin(), values.end(), 0.0F);
  }
}

std::span<const std::uint32_t> WideAndDeepBatch::occurrences(const Table& table, std::int64_t begin,
                                                             std::int64_t count,
                                                             std::size_t per_sample) const {
  return table.lookups.occurrences().subspan(static_cast<std::size_t>(begin) * per_sample,
                                             static_cast<std::size_t>(count) * per_sample);
}

void WideAndDeepBatch::gather(std::int64_t begin, std::int64_t count,
                              const tensor::BatchMemory& memory) const {
  const Table &wide = tables_[kWideTable], &deep = tables_[kDeepTable];
  const auto weights = occurrences(wide, begin, count, wide_per_sample_);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    float sum = 0;
    for (const std::uint32_t place : weights.subspan(i * wide_per_sample_, wide_per_sample_))
      sum += wide.rows[place];
    memory.offsets[i] = sum;
  }
  float* to = memory.inputs.data();
  for (const std::uint32_t place : occurrences(deep, begin, count, fields_))
    to = std::copy_n(deep.rows.get() + place * deep.width, deep.width, to);
}

void WideAndDeepBatch::scatter(std::int64_t begin, std::int64_t count, const tensor::BatchMemory& memory) {
  const Table &wide = tables_[kWideTable], &deep = tables_[kDeepTable];
  PL_CHECK(!wide.gradients.empty() && !deep.gradients.empty(), "gradients have a place");
  const auto weights = occurrences(wide, begin, count, wide_per_sample_);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
    for (const std::uint32_t place : weights.subspan(i * wide_per_sample_, wide_per_sample_))
      wide.gradients[place] += memory.offset_gradients[i];
  }
  const float* from = memory.input_gradients.data();
  for (const std::uint32_t place : occurrences(deep, begin, count, fields_)) {
    float* to = deep.gradients.data() + place * deep.width;
    for (std::size_t i = 0; i < deep.width; ++i) to[i] += from[i];
    from += deep.width;
  }
}

}  // namespace paceline::model

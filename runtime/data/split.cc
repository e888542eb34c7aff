#include "runtime/data/split.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"
#include "base/rng.h"
#include "base/status.h"
#include "runtime/data/ledger.h"

namespace paceline::data {

namespace {

constexpr std::uint64_t kSplitStream = 0x73706c6974000001u;
constexpr std::size_t kRowsAtOnce = 64;  // indices translated on the stack

// Samples [first, first + size) of a permutation of `whole`.
class Subset final : public Dataset {
 public:
  Subset(std::shared_ptr<const Dataset> whole, std::uint64_t key, std::int64_t first, std::int64_t size)
      : whole_(std::move(whole)), key_(key), first_(first), size_(size) {}

  const SampleShape& shape() const override { return whole_->shape(); }
  std::int64_t size() const override { return size_; }

  std::string place_of(std::int64_t index) const override {
    return whole_->place_of(permute(key_, whole_->size(), first_ + index));
  }

  absl::Status fetch(std::span<const std::int64_t> indices, std::uint64_t augmentation_seed,
                     const BatchView& batch) const override {
    std::array<std::int64_t, kRowsAtOnce> translated;
    const auto rows = [&](auto span, std::size_t begin, std::size_t count) {
      const std::size_t row = span.size() / indices.size();
      return span.subspan(begin * row, count * row);
    };
    for (std::size_t begin = 0; begin < indices.size(); begin += kRowsAtOnce) {
      const std::size_t count = std::min(kRowsAtOnce, indices.size() - begin);
      for (std::size_t i = 0; i < count; ++i) {
        const std::int64_t index = indices[begin + i];
        PL_CHECK(index >= 0 && index < size_, "the sample is in the data set");
        translated[i] = permute(key_, whole_->size(), first_ + index);
      }
      PL_RETURN_IF_ERROR(whole_->fetch(std::span(translated).first(count), augmentation_seed,
                                       {rows(batch.inputs, begin, count), rows(batch.tokens, begin, count),
                                        rows(batch.labels, begin, count)}));
    }
    return absl::OkStatus();
  }

 private:
  const std::shared_ptr<const Dataset> whole_;
  const std::uint64_t key_;
  const std::int64_t first_;
  const std::int64_t size_;
};

}  // namespace

absl::StatusOr<Datasets> split_dataset(std::shared_ptr<const Dataset> whole, double fraction,
                                       std::uint64_t seed) {
  if (!(fraction > 0 && fraction < 1)) {
    return absl::InvalidArgumentError(str_cat("testFraction ", fraction, "; allowed: above 0 and below 1"));
  }
  const std::int64_t size = whole->size();
  if (size < 2) return absl::InvalidArgumentError("testFraction: one sample can't be split into two sets");
  const std::int64_t held_out =
      std::clamp<std::int64_t>(std::llround(fraction * static_cast<double>(size)), 1, size - 1);
  const std::uint64_t key = mix64(seed ^ kSplitStream);
  Datasets sets;
  sets.test = std::make_shared<Subset>(whole, key, 0, held_out);
  sets.train = std::make_shared<Subset>(std::move(whole), key, held_out, size - held_out);
  return sets;
}

}  // namespace paceline::data

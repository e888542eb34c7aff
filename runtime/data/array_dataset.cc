#include "runtime/data/array_dataset.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/check.h"
#include "base/rng.h"
#include "base/status.h"

namespace paceline::data {

std::int64_t element_bytes(ElementType type) {
  return visit(type, [](auto number) { return static_cast<std::int64_t>(sizeof(number)); });
}

std::int64_t ArrayRows::rows() const {
  std::int64_t total = 0;
  for (const ArrayPart& part : parts) total += part.rows;
  return total;
}

namespace {

// One contiguous run of elements to floats. The loads go through memcpy because a file's elements may lie at
// any address.
template <typename T>
void convert_run(const std::byte* from, std::int64_t count, Affine affine, float* to) {
  for (std::int64_t i = 0; i < count; ++i) {
    T value;
    std::memcpy(&value, from + i * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
    to[i] = static_cast<float>(value) * affine.factor + affine.offset;
  }
}

void convert(ElementType type, const std::byte* from, std::int64_t count, Affine affine, float* to) {
  visit(type, [&](auto number) { convert_run<decltype(number)>(from, count, affine, to); });
}

bool all_finite(std::span<const float> numbers) {
  bool finite = true;
  for (const float x : numbers) finite &= std::isfinite(x);
  return finite;
}

// Whether a number of this type may be, or become, one that isn't finite.
bool can_overflow(ElementType type, Affine affine) {
  return visit(type, [&](auto number) {
    using Limits = std::numeric_limits<decltype(number)>;
    if (!Limits::is_integer) return true;
    const float ends[] = {static_cast<float>(Limits::lowest()) * affine.factor + affine.offset,
                          static_cast<float>(Limits::max()) * affine.factor + affine.offset};
    return !all_finite(ends);
  });
}

class ArrayDataset final : public FileDataset {
 public:
  ArrayDataset(ArrayRows rows, std::vector<std::int32_t> labels, Affine affine,
               ImageAugmentation augmentation)
      : rows_(std::move(rows)),
        labels_(std::move(labels)),
        affine_(affine),
        augmentation_(augmentation),
        can_overflow_(can_overflow(rows_.type, affine)) {
    shape_.kind = InputKind::kFloats;
    shape_.dims = rows_.dims;
    shape_.labels = 1;
    const auto [smallest, largest] = std::minmax_element(labels_.begin(), labels_.end());
    shape_.smallest_label = *smallest;
    shape_.classes = std::int64_t{*largest} + 1;
    elements_ = shape_.elements();
    std::int64_t first = 0;
    for (const ArrayPart& part : rows_.parts) {
      first_rows_.push_back(first);
      first += part.rows;
    }
  }

  const SampleShape& shape() const override { return shape_; }
  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }

  absl::Status fetch(std::span<const std::int64_t> indices, std::uint64_t augmentation_seed,
                     const BatchView& batch) const override {
    PL_CHECK(batch.inputs.size() == indices.size() * static_cast<std::size_t>(elements_) &&
                 batch.labels.size() == indices.size(),
             "the batch has room for exactly these samples");
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const std::int64_t index = indices[i];
      PL_CHECK(index >= 0 && index < size(), "the sample is in the data set");
      float* to = batch.inputs.data() + i * static_cast<std::size_t>(elements_);
      if (augmentation_seed != 0 && augmentation_.any()) {
        augment(row(index), Rng(augmentation_seed, static_cast<std::uint64_t>(index)), to);
      } else {
        convert(rows_.type, row(index), elements_, affine_, to);
      }
      if (can_overflow_ && !all_finite({to, static_cast<std::size_t>(elements_)})) return not_finite(index);
      batch.labels[i] = labels_[static_cast<std::size_t>(index)];
    }
    return absl::OkStatus();
  }

  std::string place_of(std::int64_t index) const override {
    const std::size_t p = part_of(index);
    return str_cat(rows_.parts[p].file, ": sample ", index - first_rows_[p]);
  }

  std::uint64_t inspected_bytes() const override {
    return can_overflow_ ? static_cast<std::uint64_t>(size() * elements_ * element_bytes(rows_.type)) : 0;
  }

  absl::Status inspect(const std::stop_token& stop) const override {
    if (!can_overflow_) return absl::OkStatus();
    std::vector<float> numbers(static_cast<std::size_t>(elements_));
    for (std::int64_t i = 0; i < size() && !stop.stop_requested(); ++i) {
      convert(rows_.type, row(i), elements_, affine_, numbers.data());
      if (!all_finite(numbers)) return not_finite(i);
    }
    return absl::OkStatus();
  }

 private:
  std::size_t part_of(std::int64_t index) const {
    const auto after = std::upper_bound(first_rows_.begin(), first_rows_.end(), index);
    return static_cast<std::size_t>(after - first_rows_.begin()) - 1;
  }
  const std::byte* row(std::int64_t index) const {
    const std::size_t p = part_of(index);
    return rows_.parts[p].data + (index - first_rows_[p]) * rows_.parts[p].stride;
  }

  // REQUIRES: a number of the sample isn't finite.
  absl::Status not_finite(std::int64_t index) const {
    const std::int64_t bytes = element_bytes(rows_.type);
    float number = 0;
    std::int64_t i = -1;
    while (std::isfinite(number)) convert(rows_.type, row(index) + ++i * bytes, 1, affine_, &number);
    const double found = visit(rows_.type, [&](auto value) {
      std::memcpy(&value, row(index) + i * bytes, sizeof(value));
      return static_cast<double>(value);
    });
    return absl::InvalidArgumentError(
        str_cat(place_of(index), ", feature ", i, " is ", found,
                std::isfinite(found) ? str_cat(", and ", number, " as a normalized 32-bit float") : "",
                "; allowed: finite numbers"));
  }

  // Crops at a random place of the image padded by `crop` on every side, then mirrors it.
  void augment(const std::byte* from, Rng rng, float* to) const {
    const std::int64_t channels = shape_.dims[0], height = shape_.dims[1], width = shape_.dims[2];
    const std::int64_t crop = augmentation_.crop;
    const auto shift = [&] {
      return static_cast<std::int64_t>(rng.below(2 * static_cast<std::uint64_t>(crop) + 1)) - crop;
    };
    const std::int64_t down = shift(), right = shift();
    const bool mirror = augmentation_.flip && rng.below(2) == 1;
    const std::int64_t left_edge =
        std::clamp<std::int64_t>(-right, 0, width);  // pixels that come in from the left
    const std::int64_t right_edge = std::clamp<std::int64_t>(width - right, left_edge, width);
    for (std::int64_t c = 0; c < channels; ++c) {
      for (std::int64_t y = 0; y < height; ++y, to += width) {
        const std::int64_t source = y + down;
        if (source < 0 || source >= height) {
          std::fill_n(to, width, affine_.offset);
          continue;
        }
        std::fill(to, to + left_edge, affine_.offset);
        const std::int64_t begin = (c * height + source) * width + left_edge + right;
        convert(rows_.type, from + begin * element_bytes(rows_.type), right_edge - left_edge, affine_,
                to + left_edge);
        std::fill(to + right_edge, to + width, affine_.offset);
        if (mirror) std::reverse(to, to + width);
      }
    }
  }

  const ArrayRows rows_;
  const std::vector<std::int32_t> labels_;
  const Affine affine_;
  const ImageAugmentation augmentation_;
  const bool can_overflow_;
  SampleShape shape_;
  std::int64_t elements_ = 0;
  std::vector<std::int64_t> first_rows_;
};

}  // namespace

std::shared_ptr<const FileDataset> make_array_dataset(ArrayRows rows, std::vector<std::int32_t> labels,
                                                      Affine affine, ImageAugmentation augmentation) {
  PL_CHECK(!labels.empty() && static_cast<std::int64_t>(labels.size()) == rows.rows(),
           "each row has a label");
  PL_CHECK(std::all_of(labels.begin(), labels.end(), [](std::int32_t l) { return l >= 0; }),
           "labels are >= 0");
  PL_CHECK(!augmentation.any() || rows.dims.size() == 3, "only images are augmented");
  return std::make_shared<ArrayDataset>(std::move(rows), std::move(labels), affine, augmentation);
}

}  // namespace paceline::data

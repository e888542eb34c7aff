#include "runtime/data/array_dataset.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/rng.h"
#include "base/status.h"

namespace paceline::data {

std::int64_t element_bytes(ElementType type) {
  switch (type) {
    case ElementType::kU8:
      return 1;
    case ElementType::kI32:
    case ElementType::kF32:
      return 4;
    case ElementType::kI64:
    case ElementType::kF64:
      return 8;
  }
  return 0;
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
  switch (type) {
    case ElementType::kU8:
      return convert_run<std::uint8_t>(from, count, affine, to);
    case ElementType::kI32:
      return convert_run<std::int32_t>(from, count, affine, to);
    case ElementType::kI64:
      return convert_run<std::int64_t>(from, count, affine, to);
    case ElementType::kF32:
      return convert_run<float>(from, count, affine, to);
    case ElementType::kF64:
      return convert_run<double>(from, count, affine, to);
  }
}

class ArrayDataset final : public Dataset {
 public:
  ArrayDataset(ArrayRows rows, std::vector<std::int32_t> labels, Affine affine,
               ImageAugmentation augmentation)
      : rows_(std::move(rows)), labels_(std::move(labels)), affine_(affine), augmentation_(augmentation) {
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
      batch.labels[i] = labels_[static_cast<std::size_t>(index)];
    }
    return absl::OkStatus();
  }

 private:
  const std::byte* row(std::int64_t index) const {
    const auto after = std::upper_bound(first_rows_.begin(), first_rows_.end(), index);
    const auto p = static_cast<std::size_t>(after - first_rows_.begin()) - 1;
    return rows_.parts[p].data + (index - first_rows_[p]) * rows_.parts[p].stride;
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
  SampleShape shape_;
  std::int64_t elements_ = 0;
  std::vector<std::int64_t> first_rows_;
};

}  // namespace

std::shared_ptr<const Dataset> make_array_dataset(ArrayRows rows, std::vector<std::int32_t> labels,
                                                  Affine affine, ImageAugmentation augmentation) {
  PL_CHECK(!labels.empty() && static_cast<std::int64_t>(labels.size()) == rows.rows(),
           "each row has a label");
  PL_CHECK(std::all_of(labels.begin(), labels.end(), [](std::int32_t l) { return l >= 0; }),
           "labels are >= 0");
  PL_CHECK(!augmentation.any() || rows.dims.size() == 3, "only images are augmented");
  return std::make_shared<ArrayDataset>(std::move(rows), std::move(labels), affine, augmentation);
}

}  // namespace paceline::data

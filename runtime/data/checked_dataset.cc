#include "runtime/data/checked_dataset.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "base/status.h"

namespace paceline::data {

namespace {

constexpr std::int64_t kAnyToken = std::int64_t{1} << 31;

class CheckedDataset final : public Dataset {
 public:
  CheckedDataset(std::shared_ptr<const Dataset> samples, std::string name, std::vector<std::int64_t> below,
                 std::int64_t classes)
      : samples_(std::move(samples)), name_(std::move(name)), below_(std::move(below)), classes_(classes) {}

  const SampleShape& shape() const override { return samples_->shape(); }
  std::int64_t size() const override { return samples_->size(); }

  std::string place_of(std::int64_t index) const override {
    return str_cat(name_, ": ", samples_->place_of(index));
  }

  absl::Status fetch(std::span<const std::int64_t> indices, std::uint64_t augmentation_seed,
                     const BatchView& batch) const override {
    PL_RETURN_IF_ERROR(samples_->fetch(indices, augmentation_seed, batch));
    const auto elements = static_cast<std::size_t>(shape().elements());
    for (std::size_t i = 0; i < batch.inputs.size(); ++i) {
      if (std::isfinite(batch.inputs[i])) continue;
      return absl::InvalidArgumentError(str_cat(name_, ": sample ", indices[i / elements], ", feature ",
                                                i % elements, " is ", batch.inputs[i],
                                                "; allowed: finite numbers"));
    }
    const std::size_t width = below_.size(), labels = static_cast<std::size_t>(shape().labels);
    for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
      if (batch.tokens[i] >= 0 && batch.tokens[i] < below_[i % width]) continue;
      return wrong(indices[i / width], "field", i % width, batch.tokens[i], below_[i % width]);
    }
    if (classes_ == 0) return absl::OkStatus();
    for (std::size_t i = 0; i < batch.labels.size(); ++i) {
      if (batch.labels[i] >= 0 && batch.labels[i] < classes_) continue;
      return wrong(indices[i / labels], "label", i % labels, batch.labels[i], classes_);
    }
    return absl::OkStatus();
  }

 private:
  absl::Status wrong(std::int64_t sample, const char* what, std::size_t place, std::int32_t found,
                     std::int64_t below) const {
    return absl::InvalidArgumentError(str_cat(name_, ": sample ", sample, ", ", what, " ", place, " is ",
                                              found, "; allowed: 0 to ", below - 1));
  }

  const std::shared_ptr<const Dataset> samples_;
  const std::string name_;
  const std::vector<std::int64_t> below_;  // of a sample's tokens; empty: it has numbers
  const std::int64_t classes_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const Dataset>> check_values(std::shared_ptr<const Dataset> samples,
                                                            std::string name, const ValueLimits& limits) {
  const SampleShape& shape = samples->shape();
  const std::int64_t any = limits.tokens > 0 ? limits.tokens : kAnyToken;
  std::vector<std::int64_t> below;
  if (shape.kind == InputKind::kTokens) below.assign(static_cast<std::size_t>(shape.elements()), any);
  if (!shape.vocabularies.empty() && shape.vocabularies.size() != below.size()) {
    return absl::InvalidArgumentError(str_cat(name, ": its shape has ", shape.vocabularies.size(),
                                              " vocabularies; allowed: none, or one for each of the ",
                                              below.size(), " fields of a sample"));
  }
  for (std::size_t f = 0; f < shape.vocabularies.size(); ++f) {
    const std::int64_t values = shape.vocabularies[f];
    if (values < 1 || values > kAnyToken) {
      return absl::InvalidArgumentError(str_cat(name, ": its shape says that field ", f, " has ", values,
                                                " values; allowed: 1 to ", kAnyToken));
    }
    below[f] = std::min(any, values);
  }
  return std::make_shared<CheckedDataset>(std::move(samples), std::move(name), std::move(below),
                                          limits.classes);
}

}  // namespace paceline::data

#include "runtime/trainer/not_finite.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"

namespace paceline::trainer {

absl::Status not_finite(const std::string& what, double loss, bool updated, const data::Dataset& train,
                        const data::Batch& batch) {
  const std::string found = str_cat(what, " is ", loss);
  if (updated) {
    return absl::OutOfRangeError(
        str_cat(found,
                ", training has diverged; lower optimizer.learningRate, warm it up, or set "
                "optimizer.clipNorm"));
  }
  std::string largest;
  if (!batch.inputs.empty()) {
    const auto at = std::ranges::max_element(batch.inputs, {}, [](float x) { return std::abs(x); });
    const auto index = at - batch.inputs.begin();
    const std::int64_t elements = train.shape().elements();
    largest = str_cat("; the largest number of this member's samples is ", *at, " (",
                      train.place_of(batch.indices[static_cast<std::size_t>(index / elements)]), ", feature ",
                      index % elements, ")");
  }
  return absl::OutOfRangeError(
      str_cat(found,
              " before any update, so that the learning rate is not to blame: look at the data, and "
              "scale it by data.normalize",
              largest));
}

}  // namespace paceline::trainer

#include "runtime/trainer/odd_sizes.h"

#include <cstdint>

#include "base/text.h"

namespace paceline::trainer {

namespace {
constexpr std::int64_t kMultiple = 8;  // 16 bytes of bf16, at which a tensor core's loads begin
}

std::string odd_sizes_warning(const v1::TrainingSpec& spec) {
  if (spec.precision() != v1::PRECISION_BF16) return "";
  std::string sizes;
  const auto look = [&](const std::string& field, std::int64_t size) {
    if (size % kMultiple == 0) return;
    sizes += str_cat(sizes.empty() ? "" : ", ", "training.model.", field, " is ", size, " (the next is ",
                     (size / kMultiple + 1) * kMultiple, ")");
  };
  if (spec.model().has_gpt()) {
    look("vocabularySize", spec.model().gpt().vocabulary_size());
    look("width", spec.model().gpt().width());
  }
  const v1::ModelSpec& model = spec.model();
  const auto& hidden = model.has_cnn()             ? model.cnn().hidden()
                       : model.has_wide_and_deep() ? model.wide_and_deep().hidden()
                                                   : model.mlp().hidden();
  for (int i = 0; i < hidden.size(); ++i) look(str_cat("hidden[", i, "]"), hidden[i]);
  if (sizes.empty()) return "";
  return str_cat(sizes, ": products in bf16 are slower on a GPU with sizes that are no multiples of ",
                 kMultiple);
}

}  // namespace paceline::trainer

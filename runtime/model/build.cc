#include "runtime/model/build.h"

#include "base/status.h"
#include "runtime/model/cnn.h"
#include "runtime/model/gpt.h"
#include "runtime/model/mlp.h"
#include "runtime/model/wide_and_deep.h"

namespace paceline::model {

namespace {

absl::StatusOr<std::unique_ptr<Model>> make_custom(const v1::CustomSpec& spec,
                                                   const ModelRegistry& registry) {
  const auto found = registry.find(spec.name());
  if (found != registry.end())
    return found->second(Parameters(spec.parameters().begin(), spec.parameters().end()));
  std::string known;
  for (const auto& [name, factory] : registry) known += (known.empty() ? "" : ", ") + name;
  return absl::NotFoundError(
      str_cat("this program has no model named ", spec.name(), "; it has: ", known.empty() ? "none" : known));
}

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> make_model(const v1::ModelSpec& spec, const ModelRegistry& registry) {
  switch (spec.kind_case()) {
    case v1::ModelSpec::kMlp:
      return make_mlp(spec.mlp());
    case v1::ModelSpec::kCnn:
      return make_cnn(spec.cnn());
    case v1::ModelSpec::kGpt:
      return make_gpt(spec.gpt());
    case v1::ModelSpec::kWideAndDeep:
      return make_wide_and_deep(spec.wide_and_deep());
    case v1::ModelSpec::kCustom:
      return make_custom(spec.custom(), registry);
    default:
      return absl::InvalidArgumentError("the specification names no model that this version knows");
  }
}

}  // namespace paceline::model

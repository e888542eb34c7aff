#include "runtime/model/mlp.h"

#include <utility>
#include <vector>

#include "base/status.h"
#include "runtime/model/layers.h"

namespace paceline::model {

namespace {

class Mlp final : public Model {
 public:
  explicit Mlp(v1::MlpSpec spec) : spec_(std::move(spec)) {}

  absl::Status build(tensor::GraphBuilder& graph, const data::SampleShape& sample) const override {
    PL_RETURN_IF_ERROR(check_classification(sample, spec_.classes()));
    classify(graph, graph.input(sample.dims), {spec_.hidden().begin(), spec_.hidden().end()},
             spec_.activation(), spec_.classes());
    return graph.status();
  }

 private:
  const v1::MlpSpec spec_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Model>> make_mlp(const v1::MlpSpec& spec) {
  for (const auto width : spec.hidden()) {
    if (width < 1)
      return absl::InvalidArgumentError(str_cat("mlp: hidden width ", width, " is not positive"));
  }
  if (spec.classes() < 2)
    return absl::InvalidArgumentError(str_cat("mlp: classes is ", spec.classes(), ", must be at least 2"));
  return std::make_unique<Mlp>(spec);
}

}  // namespace paceline::model

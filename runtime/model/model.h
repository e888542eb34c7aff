#pragma once

// What a model is: something that describes its computation to a GraphBuilder. The same interface serves the
// models of this folder and a user's own (docs/custom-model.md).

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/data/dataset.h"
#include "runtime/tensor/graph.h"

namespace paceline::model {

class Model {
 public:
  virtual ~Model() = default;
  // Describes the computation of one batch: inputs of `sample` shape to a loss. Called once per compiled
  // program (training, evaluation); parameters of the same name are the same. INVALID_ARGUMENT where the
  // data's shape doesn't fit the model, with both shapes in the message.
  virtual absl::Status build(tensor::GraphBuilder& graph, const data::SampleShape& sample) const = 0;
};

// The scalars under `model.parameters` of a custom model, as written.
using Parameters = std::map<std::string, std::string>;
using ModelFactory = std::function<absl::StatusOr<std::unique_ptr<Model>>(const Parameters&)>;

}  // namespace paceline::model

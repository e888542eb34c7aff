#pragma once

// What the classifiers of this folder share.

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/data/dataset.h"
#include "runtime/tensor/graph.h"

namespace paceline::model {

tensor::Value activate(tensor::GraphBuilder& graph, v1::Activation activation, tensor::Value x);

// Hidden fully connected layers "fc1", "fc2", ... and the output layer "output" with the cross-entropy behind
// it.
void classify(tensor::GraphBuilder& graph, tensor::Value x, const std::vector<std::int64_t>& hidden,
              v1::Activation activation, std::int64_t classes);

// INVALID_ARGUMENT where the data has tokens, several labels for a sample, or more classes than the model.
absl::Status check_classification(const data::SampleShape& sample, std::int64_t classes);

}  // namespace paceline::model

#pragma once

// A small training job as the controller's tests take it: a name, and what they are about.

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "base/text.h"
#include "controller/api/parse.h"

namespace paceline {

inline constexpr std::string_view kTwoWorkers = "  replicaSpecs: {worker: {replicas: 2}}\n";

// `replicas`: lines of its spec, indented by two, that say who trains, and how.
inline api::TrainingJob small_job(const std::string& name, std::string_view replicas = kTwoWorkers) {
  const std::string text = str_cat(R"(apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata: {name: )",
                                   name, "}\nspec:\n", replicas, R"(  training:
    model: {type: mlp, hidden: [8], classes: 2}
    data: {format: csv, train: {inputs: train.csv}}
    optimizer: {type: SGD, learningRate: 0.1}
    globalBatchSize: 8
    steps: 10
)");
  const api::Parsed parsed = api::parse_training_job(text, "test");
  EXPECT_TRUE(parsed.job) << api::render_diagnostics(parsed.diagnostics, text);
  return parsed.job.value();
}

}  // namespace paceline

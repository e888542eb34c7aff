#pragma once

// Texts for the tests: one small job that is right, and pieces to change in it.

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

#include "controller/api/parse.h"

namespace paceline::api {

inline constexpr std::string_view kGoodJob = R"(apiVersion: paceline.dev/v1alpha1
kind: TrainingJob
metadata:
  name: digits
spec:
  replicaSpecs:
    chief: {replicas: 1}
    worker: {replicas: 3}
  training:
    model: {type: mlp, hidden: [128], classes: 10}
    data:
      format: csv
      train: {inputs: digits.csv}
      testFraction: 0.2
    optimizer: {type: SGD, learningRate: 0.1}
    globalBatchSize: 64
    steps: 100
)";

// `text` with its only `from` replaced.
inline std::string with(std::string_view text, std::string_view from, std::string_view to) {
  std::string changed(text);
  const std::size_t at = changed.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  if (at != std::string::npos) changed.replace(at, from.size(), to);
  return changed;
}

inline TrainingJob parse_good(std::string_view text) {
  Parsed parsed = parse_training_job(text, "job.yaml");
  EXPECT_TRUE(parsed.job.has_value()) << render_diagnostics(parsed.diagnostics, text);
  return parsed.job.value_or(TrainingJob{});
}

inline std::string read_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace paceline::api

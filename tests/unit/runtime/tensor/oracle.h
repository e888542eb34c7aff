#pragma once

// Every operator of graph.h as a plain loop in double precision: what the compiled programs are compared
// with. Slow, and simple on purpose.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/tensor/graph.h"

namespace paceline::tensor {

class Oracle {
 public:
  // The graph outlives the oracle.
  explicit Oracle(const GraphBuilder& graph) : graph_(graph) {}

  std::map<std::string, std::vector<double>> parameters;
  std::vector<double> inputs;
  std::vector<double> offsets;
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> labels;

  // The sum of the samples' losses.
  double loss_sum(std::int64_t rows) const;
  std::int64_t correct(std::int64_t rows) const;
  // Of a graph that ends with scores().
  std::vector<double> scores(std::int64_t rows) const;

 private:
  using Array = std::vector<double>;
  std::vector<Array> evaluate(std::int64_t rows) const;
  Array value(const Node& node, const std::vector<Array>& values, std::int64_t rows) const;

  const GraphBuilder& graph_;
};

}  // namespace paceline::tensor

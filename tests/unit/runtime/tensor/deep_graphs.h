#pragma once

// Graphs of many layers, small enough for an emulated GPU: what passes over whole schedules are tested on.

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/tensor/graph.h"
#include "tests/unit/runtime/tensor/operator_cases.h"

namespace paceline::tensor {

struct GptShape {
  std::int64_t layers, heads, width, time, vocabulary;
};
// As runtime/model/gpt.h: a table that is also the head's weight, norms before the parts of a block.
GraphBuilder gpt_graph(const GptShape& shape);

// Of each kind of model some; and, from `seed`, graphs of random operators with residual paths of random
// lengths.
struct DeepGraph {
  std::string name;
  GraphBuilder graph;
};
std::vector<DeepGraph> deep_graphs();
GraphBuilder random_graph(std::uint64_t seed);

}  // namespace paceline::tensor

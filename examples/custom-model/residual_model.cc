#include "residual_model.h"

#include <cstdlib>
#include <string>

namespace moons {

namespace {

namespace model = paceline::model;
namespace tensor = paceline::tensor;
using tensor::Init;
using tensor::Value;

class ResidualModel final : public model::Model {
 public:
  ResidualModel(std::int64_t width, std::int64_t blocks) : width_(width), blocks_(blocks) {}

  absl::Status build(tensor::GraphBuilder& graph, const paceline::data::SampleShape& sample) const override {
    Value h = graph.dense("in", graph.input(sample.dims), width_);
    for (std::int64_t b = 0; b < blocks_; ++b) {
      const std::string name = "block" + std::to_string(b);
      const Value gain = graph.parameter(name + ".norm.gain", {width_}, Init::constant(1), false);
      const Value bias = graph.parameter(name + ".norm.bias", {width_}, Init::constant(0), false);
      const Value normed = graph.layer_norm(h, gain, bias);
      const Value inner = graph.gelu(graph.dense(name + ".up", normed, 2 * width_));
      h = graph.add(h, graph.dense(name + ".down", inner, width_));
    }
    graph.softmax_cross_entropy(graph.dense("out", h, sample.classes));
    return graph.status();
  }

 private:
  const std::int64_t width_, blocks_;
};

std::int64_t number(const model::Parameters& parameters, const std::string& name, std::int64_t otherwise) {
  const auto at = parameters.find(name);
  return at == parameters.end() ? otherwise : std::strtoll(at->second.c_str(), nullptr, 10);
}

}  // namespace

absl::StatusOr<std::unique_ptr<model::Model>> make_residual_model(const model::Parameters& parameters) {
  const std::int64_t width = number(parameters, "width", 32), blocks = number(parameters, "blocks", 2);
  if (width < 1 || width > 4096 || blocks < 0 || blocks > 64) {
    return absl::InvalidArgumentError("residual: width must be in 1..4096, blocks in 0..64");
  }
  return std::make_unique<ResidualModel>(width, blocks);
}

}  // namespace moons

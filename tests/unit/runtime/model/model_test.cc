#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/model/build.h"
#include "runtime/tensor/compiler.h"
#include "runtime/tensor/cpu/cpu_device.h"
#include "tests/support/run_program.h"

namespace paceline::model {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

data::SampleShape images(std::vector<std::int64_t> dims, std::int64_t classes = 10) {
  data::SampleShape shape;
  shape.dims = std::move(dims);
  shape.classes = classes;
  return shape;
}

data::SampleShape labelled(std::vector<std::int64_t> dims, std::int64_t smallest, std::int64_t largest) {
  data::SampleShape shape = images(std::move(dims), largest + 1);
  shape.smallest_label = smallest;
  return shape;
}

v1::ModelSpec mlp(std::vector<std::int64_t> hidden, std::int64_t classes = 10) {
  v1::ModelSpec spec;
  for (const auto width : hidden) spec.mutable_mlp()->add_hidden(width);
  spec.mutable_mlp()->set_classes(classes);
  return spec;
}

v1::ModelSpec cnn(std::vector<std::int64_t> channels, std::int64_t kernel = 3, std::int64_t classes = 10) {
  v1::ModelSpec spec;
  for (const auto c : channels) spec.mutable_cnn()->add_channels(c);
  spec.mutable_cnn()->set_kernel_size(kernel);
  spec.mutable_cnn()->add_hidden(128);
  spec.mutable_cnn()->set_classes(classes);
  return spec;
}

absl::Status build(const v1::ModelSpec& spec, const data::SampleShape& sample, tensor::GraphBuilder& graph) {
  const auto model = make_model(spec, {});
  return model.ok() ? (*model)->build(graph, sample) : model.status();
}

std::vector<std::string> parameters(const tensor::GraphBuilder& graph) {
  std::vector<std::string> names;
  for (const auto& node : graph.nodes()) {
    if (node.kind == tensor::OpKind::kParameter)
      names.push_back(node.name + " " + tensor::dims_text(node.dims));
  }
  return names;
}

TEST(Mlp, ParametersAndShapes) {
  tensor::GraphBuilder graph;
  ASSERT_TRUE(build(mlp({128}), images({1, 8, 8}), graph).ok());
  EXPECT_THAT(parameters(graph), ::testing::ElementsAre("fc1.weight {128, 64}", "fc1.bias {128}",
                                                        "output.weight {10, 128}", "output.bias {10}"));
}

TEST(Mlp, NoHiddenLayerIsLogisticRegression) {
  tensor::GraphBuilder graph;
  ASSERT_TRUE(build(mlp({}), images({7}), graph).ok());
  EXPECT_THAT(parameters(graph), ::testing::ElementsAre("output.weight {10, 7}", "output.bias {10}"));
}

TEST(Cnn, ParametersAndShapes) {
  tensor::GraphBuilder graph;
  ASSERT_TRUE(build(cnn({16, 32}), images({1, 28, 28}), graph).ok());
  EXPECT_THAT(parameters(graph), ::testing::ElementsAre("conv1.weight {16, 1, 3, 3}", "conv1.bias {16}",
                                                        "conv2.weight {32, 16, 3, 3}", "conv2.bias {32}",
                                                        "fc1.weight {128, 1568}", "fc1.bias {128}",
                                                        "output.weight {10, 128}", "output.bias {10}"));
}

TEST(Models, EveryActivationCompilesAndRuns) {
  const auto device = tensor::make_cpu_device({});
  for (const auto activation : {v1::ACTIVATION_RELU, v1::ACTIVATION_GELU, v1::ACTIVATION_TANH}) {
    for (v1::ModelSpec spec : {mlp({9, 5}), cnn({6, 16})}) {
      if (spec.has_mlp()) spec.mutable_mlp()->set_activation(activation);
      if (spec.has_cnn()) spec.mutable_cnn()->set_activation(activation);
      tensor::GraphBuilder graph;
      ASSERT_TRUE(build(spec, images({2, 9, 9}), graph).ok());
      auto program = tensor::compile(graph, *device, {4, tensor::Precision::kF32, tensor::Mode::kTraining});
      ASSERT_TRUE(program.ok()) << program.status();
      std::vector<float> weights((*program)->parameters().elements);
      std::vector<float> gradients(weights.size());
      (*program)->bind(weights, gradients);
      (*program)->initialize(1, weights);
      (*program)->weights_changed();
      EXPECT_GT(forward(**program, 4).loss_sum, 0);
      backward(**program, 1, false, nullptr);
    }
  }
}

struct Refusal {
  const char* name;
  v1::ModelSpec spec;
  data::SampleShape sample;
  std::vector<const char*> words;
};

class Refusals : public ::testing::TestWithParam<Refusal> {};

TEST_P(Refusals, SayWhatDoesNotFit) {
  tensor::GraphBuilder graph;
  const auto status = build(GetParam().spec, GetParam().sample, graph);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  for (const char* word : GetParam().words) EXPECT_THAT(std::string(status.message()), HasSubstr(word));
}

data::SampleShape token_samples() {
  data::SampleShape shape;
  shape.kind = data::InputKind::kTokens;
  shape.dims = {16};
  shape.labels = 16;
  return shape;
}

data::SampleShape many_labels() {
  auto shape = images({4});
  shape.labels = 3;
  return shape;
}

INSTANTIATE_TEST_SUITE_P(
    All, Refusals,
    ::testing::Values(
        Refusal{"width", mlp({0}), images({4}), {"mlp", "0"}},
        Refusal{"one_class", mlp({4}, 1), images({4}), {"mlp", "classes is 1"}},
        Refusal{"more_classes_in_the_data",
                mlp({4}, 5),
                images({4}),
                {"labels are from 0 to 9; with model.classes 5 they must be from 0 to 4",
                 "set model.classes to 10"}},
        Refusal{"labels_from_1",
                mlp({4}, 10),
                labelled({4}, 1, 10),
                {"labels are from 1 to 10; with model.classes 10 they must be from 0 to 9",
                 "subtract 1 from each, or set model.classes to 11 (and leave 1 of them unused)"}},
        Refusal{"tokens", mlp({4}), token_samples(), {"tokens", "gpt"}},
        Refusal{"labels", mlp({4}), many_labels(), {"3 labels"}},
        Refusal{"no_channels", cnn({}), images({1, 8, 8}), {"cnn", "channels"}},
        Refusal{"negative_channels", cnn({-4}), images({1, 8, 8}), {"cnn", "-4"}},
        Refusal{"even_kernel", cnn({4}, 4), images({1, 8, 8}), {"cnn", "kernelSize is 4"}},
        Refusal{"cnn_classes", cnn({4}, 3, 0), images({1, 8, 8}), {"cnn", "classes is 0"}},
        Refusal{"flat_samples", cnn({4}), images({64}), {"cnn", "{64}", "data.shape"}},
        Refusal{"too_small", cnn({4, 4, 4, 4}), images({1, 8, 8}), {"cnn", "{1, 8, 8}", "block 4"}},
        Refusal{"nothing", v1::ModelSpec{}, images({4}), {"no model"}}),
    [](const auto& info) { return std::string(info.param.name); });

class Line final : public Model {
 public:
  explicit Line(std::string width) : width_(std::move(width)) {}
  absl::Status build(tensor::GraphBuilder& graph, const data::SampleShape& sample) const override {
    graph.softmax_cross_entropy(graph.dense("line", graph.input(sample.dims), std::stoi(width_)));
    return graph.status();
  }

 private:
  std::string width_;
};

TEST(Custom, IsFoundByNameAndGetsItsParameters) {
  const ModelRegistry registry{{"line", [](const Parameters& p) -> absl::StatusOr<std::unique_ptr<Model>> {
                                  return std::make_unique<Line>(p.at("width"));
                                }}};
  v1::ModelSpec spec;
  spec.mutable_custom()->set_name("line");
  (*spec.mutable_custom()->mutable_parameters())["width"] = "6";
  const auto model = make_model(spec, registry);
  ASSERT_TRUE(model.ok()) << model.status();
  tensor::GraphBuilder graph;
  ASSERT_TRUE((*model)->build(graph, images({3})).ok());
  EXPECT_THAT(parameters(graph), ::testing::Contains("line.weight {6, 3}"));

  spec.mutable_custom()->set_name("circle");
  const auto missing = make_model(spec, registry);
  EXPECT_EQ(missing.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.status().message()), AllOf(HasSubstr("circle"), HasSubstr("line")));
}

}  // namespace
}  // namespace paceline::model

#include "runtime/model/gpt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>

#include "runtime/tensor/compiler.h"
#include "runtime/tensor/cpu/cpu_device.h"
#include "runtime/tensor/schedule.h"
#include "tests/support/paths.h"
#include "tests/support/run_program.h"

namespace paceline::model {
namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kLayers = 2, kHeads = 2, kWidth = 8, kBlock = 6, kVocabulary = 11, kBatch = 3;

v1::GptSpec tiny() {
  v1::GptSpec spec;
  spec.set_layers(kLayers);
  spec.set_heads(kHeads);
  spec.set_width(kWidth);
  spec.set_block_size(kBlock);
  spec.set_vocabulary_size(kVocabulary);
  return spec;
}

data::SampleShape shape() {
  return {.kind = data::InputKind::kTokens, .dims = {kBlock}, .labels = kBlock, .classes = kVocabulary};
}

// The weights of gpt_golden.py: parameters in the order of their names.
void fill_weights(const tensor::ParameterLayout& layout, std::span<float> weights) {
  std::map<std::string, const tensor::Parameter*> by_name;
  for (const auto& parameter : layout.parameters) by_name[parameter.name] = &parameter;
  int number = 0;
  for (const auto& [name, parameter] : by_name) {
    const double base = name.find("norm") != std::string::npos && name.ends_with("weight") ? 1 : 0;
    for (std::size_t i = 0; i < parameter->count; ++i) {
      const auto x = static_cast<double>(i);
      weights[parameter->offset + i] = static_cast<float>(base + 0.2 * std::sin(0.37 * x * x + number));
    }
    ++number;
  }
}

std::map<std::string, std::vector<double>> golden() {
  std::map<std::string, std::vector<double>> values;
  std::ifstream file(source_path("tests/unit/runtime/model/gpt_golden.txt"));
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    words >> name;
    for (double v = 0; words >> v;) values[name].push_back(v);
  }
  return values;
}

class GptTest : public ::testing::Test {
 protected:
  void SetUp() override {
    device_ = tensor::make_cpu_device({});
    tensor::GraphBuilder graph;
    auto model = make_gpt(tiny());
    ASSERT_TRUE(model.ok()) << model.status();
    ASSERT_TRUE((*model)->build(graph, shape()).ok()) << graph.status();
    auto program = tensor::compile(graph, *device_, {.max_rows = kBatch});
    ASSERT_TRUE(program.ok()) << program.status();
    program_ = *std::move(program);
    weights_.assign(program_->parameters().elements, 0.0F);
    gradients_.assign(weights_.size(), 0.0F);
    program_->bind(weights_, gradients_);
    const tensor::BatchMemory batch = program_->batch();
    for (std::int64_t r = 0; r < kBatch; ++r) {
      for (std::int64_t t = 0; t < kBlock; ++t) {
        batch.tokens[static_cast<std::size_t>(r * kBlock + t)] =
            static_cast<int>((7 * r * r + 3 * t) % kVocabulary);
        batch.labels[static_cast<std::size_t>(r * kBlock + t)] =
            static_cast<int>((5 * r + t * t + 1) % kVocabulary);
      }
    }
  }

  std::unique_ptr<tensor::Device> device_;
  std::unique_ptr<tensor::Program> program_;
  std::vector<float> weights_, gradients_;
};

TEST_F(GptTest, LossAndGradientsAreTorchs) {
  const auto expected = golden();
  fill_weights(program_->parameters(), weights_);
  program_->weights_changed();
  const tensor::ForwardResult result = forward(*program_, kBatch);
  EXPECT_NEAR(result.loss_sum / kBatch, expected.at("loss").at(0), 2e-6);
  EXPECT_EQ(result.label_count, kBatch * kBlock);
  backward(*program_, 1.0F / kBatch, false, nullptr);
  EXPECT_EQ(program_->parameters().parameters.size() + 1, expected.size());
  for (const tensor::Parameter& parameter : program_->parameters().parameters) {
    const auto& gradient = expected.at(parameter.name);
    ASSERT_EQ(gradient.size(), parameter.count) << parameter.name;
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double value = gradients_[parameter.offset + i];
      ASSERT_TRUE(std::abs(value - gradient[i]) <= 1e-6 + 1e-5 * std::abs(gradient[i]))
          << parameter.name << "[" << i << "]: " << value << ", expected " << gradient[i];
    }
  }
}

// Of each position, by a graph of each length that reaches it: the losses of their scores are the model's
// own, on the same vector of weights.
TEST_F(GptTest, ScoresOfEveryLengthGiveTheModelsLoss) {
  fill_weights(program_->parameters(), weights_);
  program_->weights_changed();
  const double expected = forward(*program_, kBatch).loss_sum;
  const tensor::BatchMemory whole = program_->batch();
  std::vector<double> losses(kBlock, 0);  // of the position, all samples
  for (std::int64_t length = 1; length <= kBlock; ++length) {
    tensor::GraphBuilder graph;
    ASSERT_TRUE(build_gpt_scores(tiny(), length, graph).ok()) << graph.status();
    auto made = tensor::compile(graph, *device_, {.max_rows = kBatch, .mode = tensor::Mode::kInference});
    ASSERT_TRUE(made.ok()) << made.status();
    tensor::Program& program = **made;
    ASSERT_EQ(program.parameters().elements, weights_.size());
    for (std::size_t i = 0; i < program.parameters().parameters.size(); ++i) {
      EXPECT_EQ(program.parameters().parameters[i].name, program_->parameters().parameters[i].name);
      EXPECT_EQ(program.parameters().parameters[i].offset, program_->parameters().parameters[i].offset);
    }
    program.bind(weights_, {});
    for (std::int64_t r = 0; r < kBatch; ++r)
      std::copy_n(whole.tokens.begin() + r * kBlock, length, program.batch().tokens.begin() + r * length);
    for (std::int64_t place = 0; place < length; ++place) {
      std::fill(program.batch().labels.begin(), program.batch().labels.end(),
                static_cast<std::int32_t>(place));
      forward(program, kBatch);
      double loss = 0;
      for (std::int64_t r = 0; r < kBatch; ++r) {
        const auto scores =
            program.batch().scores.subspan(static_cast<std::size_t>(r * kVocabulary), kVocabulary);
        double sum = 0;
        for (const float score : scores) sum += std::exp(static_cast<double>(score));
        const auto label =
            static_cast<std::size_t>(whole.labels[static_cast<std::size_t>(r * kBlock + place)]);
        loss += std::log(sum) - static_cast<double>(scores[label]);
      }
      double& known = losses[static_cast<std::size_t>(place)];
      // Sums of at most 32 products in fp32, in the order of the length's own blocking.
      if (place + 1 < length) {
        EXPECT_NEAR(loss, known, 1e-5) << length << " tokens, position " << place;
      }
      known = loss;
    }
  }
  double sum = 0;
  for (const double loss : losses) sum += loss;
  EXPECT_NEAR(sum / kBlock, expected, 1e-5);
}

TEST(Gpt, GraphsOfAPrefillAndOfAStepHaveTheModelsParameters) {
  tensor::GraphBuilder scores, prefill, step;
  ASSERT_TRUE(build_gpt_scores(tiny(), 3, scores).ok());
  ASSERT_TRUE(build_gpt_prefill(tiny(), 3, prefill).ok());
  ASSERT_TRUE(build_gpt_step(tiny(), step).ok());
  const auto expected = tensor::lay_out_parameters(scores).value();
  for (const tensor::GraphBuilder* const graph : {&prefill, &step}) {
    const auto layout = tensor::lay_out_parameters(*graph).value();
    ASSERT_EQ(layout.parameters.size(), expected.parameters.size());
    for (std::size_t i = 0; i < layout.parameters.size(); ++i) {
      EXPECT_EQ(layout.parameters[i].name, expected.parameters[i].name);
      EXPECT_EQ(layout.parameters[i].offset, expected.parameters[i].offset);
    }
  }
}

TEST(Gpt, ScoresPositionsThatItHas) {
  for (const std::int64_t positions : {std::int64_t{0}, kBlock + 1}) {
    tensor::GraphBuilder graph;
    const absl::Status status = build_gpt_scores(tiny(), positions, graph);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("blockSize"));
    EXPECT_EQ(build_gpt_prefill(tiny(), positions, graph).code(), absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(GptTest, GradientsAreTheSlope) {
  fill_weights(program_->parameters(), weights_);
  program_->weights_changed();
  forward(*program_, kBatch);
  backward(*program_, 1, false, nullptr);
  const std::vector<float> gradients = gradients_;
  auto loss = [&] {
    program_->weights_changed();
    return forward(*program_, kBatch).loss_sum;
  };
  for (const tensor::Parameter& parameter : program_->parameters().parameters) {
    // Along the parameter's own gradient, where fp32 resolves the difference.
    double square = 0;
    for (std::size_t i = 0; i < parameter.count; ++i) square += std::pow(gradients[parameter.offset + i], 2);
    const double length = std::sqrt(square), h = 4e-3;
    const std::vector<float> before = weights_;
    auto moved = [&](double by) {
      for (std::size_t i = parameter.offset; i < parameter.offset + parameter.count; ++i) {
        weights_[i] = before[i] + static_cast<float>(by * gradients[i] / length);
      }
      return loss();
    };
    const double slope = (moved(h) - moved(-h)) / (2 * h);
    weights_ = before;
    EXPECT_TRUE(std::abs(slope - length) <= 0.01 * length + 2e-3)
        << parameter.name << ": " << slope << ", " << length;
  }
}

TEST_F(GptTest, BeginsAsGpt2Does) {
  program_->initialize(7, weights_);
  program_->weights_changed();
  EXPECT_NEAR(forward(*program_, kBatch).loss_sum / kBatch, std::log(static_cast<double>(kVocabulary)), 0.02);
  for (const tensor::Parameter& parameter : program_->parameters().parameters) {
    SCOPED_TRACE(parameter.name);
    const auto values = std::span(weights_).subspan(parameter.offset, parameter.count);
    EXPECT_EQ(parameter.decay, parameter.dims.size() == 2);
    if (parameter.dims.size() == 1) {
      const bool gain =
          parameter.name.find("norm") != std::string::npos && parameter.name.ends_with("weight");
      for (const float v : values) EXPECT_EQ(v, gain ? 1.0F : 0.0F);
      continue;
    }
    double square = 0;
    for (const float v : values) square += static_cast<double>(v) * v / static_cast<double>(values.size());
    const bool residual =
        parameter.name.ends_with("projection.weight") || parameter.name.ends_with("down.weight");
    const double deviation = residual ? 0.02 / std::sqrt(2.0 * kLayers) : 0.02;
    EXPECT_NEAR(std::sqrt(square), deviation, 0.35 * deviation);
  }
}

TEST(Gpt, NamesWhatDoesNotFit) {
  struct Case {
    const char* says;
    void (*spoil)(v1::GptSpec&);
  };
  const Case cases[] = {
      {"layers", [](v1::GptSpec& s) { s.set_layers(0); }},
      {"heads", [](v1::GptSpec& s) { s.set_heads(-1); }},
      {"multiple of heads", [](v1::GptSpec& s) { s.set_heads(3); }},
      {"blockSize", [](v1::GptSpec& s) { s.set_block_size(0); }},
      {"vocabularySize", [](v1::GptSpec& s) { s.set_vocabulary_size(0); }},
  };
  for (const Case& c : cases) {
    v1::GptSpec spec = tiny();
    c.spoil(spec);
    const auto model = make_gpt(spec);
    EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(model.status().message()), HasSubstr(c.says));
  }
}

TEST(Gpt, RefusesDataOfAnotherShape) {
  const auto model = make_gpt(tiny());
  ASSERT_TRUE(model.ok());
  data::SampleShape longer = shape(), images = shape(), rich = shape();
  longer.dims = {kBlock + 1};
  images.kind = data::InputKind::kFloats;
  rich.classes = kVocabulary + 1;
  for (const auto& sample : {longer, images, rich}) {
    tensor::GraphBuilder graph;
    EXPECT_EQ((*model)->build(graph, sample).code(), absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace paceline::model

#include "runtime/model/wide_and_deep.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/category.h"
#include "base/rng.h"
#include "runtime/model/build.h"
#include "runtime/model/wide_and_deep_batch.h"
#include "runtime/tensor/compiler.h"
#include "runtime/tensor/cpu/cpu_device.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/run_program.h"

namespace paceline::model {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::uint64_t kSeed = 20261121;

v1::WideAndDeepSpec spec_of(std::vector<std::int64_t> hidden, std::vector<std::vector<std::int64_t>> crosses,
                            std::int64_t embedding = 3) {
  v1::WideAndDeepSpec spec;
  spec.set_embedding(embedding);
  spec.set_activation(v1::ACTIVATION_TANH);
  for (const auto width : hidden) spec.add_hidden(width);
  for (const auto& fields : crosses) {
    auto* cross = spec.add_crosses();
    for (const auto f : fields) cross->add_fields(f);
  }
  return spec;
}

data::SampleShape clicks(std::int64_t fields) {
  data::SampleShape shape;
  shape.kind = data::InputKind::kTokens;
  shape.dims = {fields};
  shape.classes = 2;
  return shape;
}

TEST(WideAndDeep, ParametersAndTables) {
  v1::ModelSpec model;
  *model.mutable_wide_and_deep() = spec_of({16, 8}, {{0, 1}});
  const auto made = make_model(model, {});
  ASSERT_TRUE(made.ok()) << made.status();
  tensor::GraphBuilder graph;
  ASSERT_TRUE((*made)->build(graph, clicks(4)).ok()) << graph.status();
  std::vector<std::string> parameters;
  for (const auto& node : graph.nodes()) {
    if (node.kind == tensor::OpKind::kParameter)
      parameters.push_back(node.name + " " + tensor::dims_text(node.dims));
  }
  EXPECT_THAT(parameters, ElementsAre("fc1.weight {16, 12}", "fc1.bias {16}", "fc2.weight {8, 16}",
                                      "fc2.bias {8}", "output.weight {1, 8}", "output.bias {1}"));
  const auto* wide = dynamic_cast<const WideAndDeep*>(made->get());
  ASSERT_NE(wide, nullptr);
  ASSERT_EQ(wide->tables().size(), kTables);
  EXPECT_EQ(wide->tables()[kWideTable].name, "wide");
  EXPECT_EQ(wide->tables()[kWideTable].width, 1);
  EXPECT_EQ(wide->tables()[kDeepTable].name, "deep");
  EXPECT_EQ(wide->tables()[kDeepTable].width, 3);
}

TEST(WideAndDeep, RefusesWithTheField) {
  const std::pair<std::string, v1::WideAndDeepSpec> cases[] = {
      {"embedding is 0", spec_of({}, {}, 0)},
      {"embedding is 4097", spec_of({}, {}, 4097)},
      {"hidden width 0", spec_of({4, 0}, {})},
      {"the cross [2] has 1 fields", spec_of({}, {{2}})},
      {"the cross [1, 1] must name", spec_of({}, {{0, 1}, {1, 1}})},
      {"the cross [1, 0] must name", spec_of({}, {{1, 0}})},
      {"the cross [-1, 0] must name", spec_of({}, {{-1, 0}})},
  };
  for (const auto& [message, spec] : cases) {
    const auto made = make_wide_and_deep(spec);
    EXPECT_EQ(made.status().code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(made.status().message()), HasSubstr(message));
  }
}

TEST(WideAndDeep, RefusesOtherData) {
  const WideAndDeep model(spec_of({4}, {{0, 5}}));
  data::SampleShape floats = clicks(4), many = clicks(4), classes = clicks(6);
  floats.kind = data::InputKind::kFloats;
  many.labels = 4;
  classes.classes = 3;
  const std::pair<std::string, data::SampleShape> cases[] = {
      {"numbers of shape {4}", floats},
      {"with 4 labels", many},
      {"labels that are 0 or 1; the data's go to 2", classes},
      {"the cross [0, 5] names field 5; the data's fields are 0 to 4", clicks(5)},
  };
  for (const auto& [message, shape] : cases) {
    tensor::GraphBuilder graph;
    EXPECT_THAT(std::string(model.build(graph, shape).message()), HasSubstr(message));
  }
}

std::uint64_t value_id(std::int64_t field, std::int32_t value) {
  return category_id({field, value});
}

TEST(Ids, DifferForDifferentThings) {
  std::set<std::uint64_t> ids;
  std::size_t made = 0;
  for (std::int64_t field = 0; field < 40; ++field) {
    for (std::int32_t value : {0, 1, 2, 40, 65'535, 1 << 30, 2'147'483'647}) {
      ids.insert(value_id(field, value));
      ++made;
    }
  }
  const std::uint64_t a = value_id(0, 1), b = value_id(1, 1);
  for (std::int64_t cross = 0; cross < 3; ++cross) {
    for (const auto& values : std::vector<std::vector<std::uint64_t>>{{a, b}, {b, a}, {a, a}, {a, b, a}}) {
      ids.insert(cross_id(cross, values));
      ++made;
    }
  }
  EXPECT_EQ(ids.size(), made);
}

// The model as its paper's formula says, in double precision, over rows and weights by name.
struct Oracle {
  std::int64_t fields;
  v1::WideAndDeepSpec spec;
  std::map<std::uint64_t, double> wide;
  std::map<std::uint64_t, std::vector<double>> deep;
  std::map<std::string, std::vector<double>> dense;

  static void layer(const std::vector<double>& x, const std::vector<double>& weight,
                    const std::vector<double>& bias, std::vector<double>& y) {
    y = bias;
    for (std::size_t o = 0; o < y.size(); ++o) {
      for (std::size_t i = 0; i < x.size(); ++i) y[o] += weight[o * x.size() + i] * x[i];
    }
  }

  double logit(const std::int32_t* tokens) const {
    double sum = 0;
    std::vector<double> h;
    for (std::int64_t f = 0; f < fields; ++f) {
      sum += wide.at(value_id(f, tokens[f]));
      const auto& row = deep.at(value_id(f, tokens[f]));
      h.insert(h.end(), row.begin(), row.end());
    }
    for (int c = 0; c < spec.crosses_size(); ++c) {
      std::vector<std::uint64_t> values;
      for (const std::int64_t f : spec.crosses(c).fields()) values.push_back(value_id(f, tokens[f]));
      sum += wide.at(cross_id(c, values));
    }
    std::vector<double> next;
    for (int i = 1; i <= spec.hidden_size(); ++i) {
      const std::string name = "fc" + std::to_string(i);
      layer(h, dense.at(name + ".weight"), dense.at(name + ".bias"), next);
      for (double& v : next) v = std::tanh(v);
      h = next;
    }
    layer(h, dense.at("output.weight"), dense.at("output.bias"), next);
    return sum + next[0];
  }

  double loss(const std::vector<std::int32_t>& tokens, const std::vector<std::int32_t>& labels) const {
    double sum = 0;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      const double z = logit(tokens.data() + i * static_cast<std::size_t>(fields));
      sum += std::log(1 + std::exp(labels[i] == 1 ? -z : z));
    }
    return sum;
  }
};

// A model with random rows and weights, a batch in which values repeat, and the oracle of the same numbers.
struct Trial {
  static constexpr std::int64_t kFields = 4, kRows = 12;

  explicit Trial(v1::WideAndDeepSpec of) : spec(std::move(of)), model(spec), rng(kSeed, 3) {
    tensor::GraphBuilder graph;
    EXPECT_TRUE(model.build(graph, clicks(kFields)).ok()) << graph.status();
    auto compiled =
        tensor::compile(graph, *device, {kRows, tensor::Precision::kF32, tensor::Mode::kTraining});
    EXPECT_TRUE(compiled.ok()) << compiled.status();
    program = *std::move(compiled);
    weights.resize(program->parameters().elements);
    gradient.resize(weights.size());
    program->bind(weights, gradient);
    for (float& w : weights) w = 0.5F * rng.normal();
    batch = std::make_unique<WideAndDeepBatch>(*model.shape(clicks(kFields)), kRows);
    for (std::size_t t = 0; t < kTables; ++t) {
      places[t].resize(batch->max_floats(t));
      batch->place_gradients(t, places[t]);
    }
    for (std::int64_t i = 0; i < kRows * kFields; ++i)
      tokens.push_back(static_cast<std::int32_t>(rng.below(i % kFields == 0 ? 2 : 5)));
    for (std::int64_t i = 0; i < kRows; ++i) labels.push_back(static_cast<std::int32_t>(rng.below(2)));
    batch->look_up(tokens);
    oracle = {kFields, spec, {}, {}, {}};
    for (float& w : batch->rows(kWideTable)) w = 0.5F * rng.normal();
    for (float& w : batch->rows(kDeepTable)) w = 0.5F * rng.normal();
    const auto width = static_cast<std::size_t>(spec.embedding());
    for (std::size_t i = 0; i < batch->ids(kWideTable).size(); ++i)
      oracle.wide[batch->ids(kWideTable)[i]] = batch->rows(kWideTable)[i];
    for (std::size_t i = 0; i < batch->ids(kDeepTable).size(); ++i) {
      const auto row = batch->rows(kDeepTable).subspan(i * width, width);
      oracle.deep[batch->ids(kDeepTable)[i]] = {row.begin(), row.end()};
    }
    for (const auto& p : program->parameters().parameters) {
      const auto begin = weights.begin() + static_cast<std::ptrdiff_t>(p.offset);
      oracle.dense[p.name] = {begin, begin + static_cast<std::ptrdiff_t>(p.count)};
    }
  }

  // Forward and backward in passes of `rows`; the loss.
  double step(std::int64_t rows, float scale = 1) {
    batch->clear_gradients();
    double loss = 0;
    for (std::int64_t begin = 0; begin < kRows; begin += rows) {
      const std::int64_t count = std::min(rows, kRows - begin);
      const tensor::BatchMemory memory = program->batch();
      batch->gather(begin, count, memory);
      std::copy_n(labels.begin() + begin, count, memory.labels.begin());
      loss += forward(*program, count).loss_sum;
      backward(*program, scale, begin > 0, nullptr);
      batch->scatter(begin, count, memory);
    }
    return loss;
  }

  double difference(double& w) {
    constexpr double kStep = 1e-5;
    const double saved = w;
    w = saved + kStep;
    const double above = oracle.loss(tokens, labels);
    w = saved - kStep;
    const double below = oracle.loss(tokens, labels);
    w = saved;
    return (above - below) / (2 * kStep);
  }

  const v1::WideAndDeepSpec spec;
  const WideAndDeep model;
  Rng rng;
  std::unique_ptr<tensor::Device> device = tensor::make_cpu_device({});
  std::unique_ptr<tensor::Program> program;
  std::unique_ptr<WideAndDeepBatch> batch;
  std::array<std::vector<float>, kTables> places;  // of the rows' gradients
  std::vector<float> weights, gradient;
  std::vector<std::int32_t> tokens, labels;
  Oracle oracle;
};

class Shapes : public ::testing::TestWithParam<int> {
 protected:
  static v1::WideAndDeepSpec spec() {
    const std::vector<v1::WideAndDeepSpec> all = {spec_of({7, 5}, {{0, 1}, {0, 1, 3}}), spec_of({6}, {}),
                                                  spec_of({}, {{2, 3}}), spec_of({4}, {{1, 2}}, 1)};
    return all[static_cast<std::size_t>(GetParam())];
  }
};

TEST_P(Shapes, LossAndEveryGradientAreTheOracles) {
  Trial trial(spec());
  const double expected = trial.oracle.loss(trial.tokens, trial.labels);
  EXPECT_NEAR(trial.step(Trial::kRows, 0.5F), expected, 1e-5 * expected);
  const auto near = [](float got, double derivative) {
    return std::abs(static_cast<double>(got) - derivative) <= 1e-5 * (1 + std::abs(derivative));
  };
  for (std::size_t i = 0; i < trial.batch->ids(kWideTable).size(); ++i) {
    const std::uint64_t id = trial.batch->ids(kWideTable)[i];
    EXPECT_TRUE(near(trial.batch->gradients(kWideTable)[i], 0.5 * trial.difference(trial.oracle.wide.at(id))))
        << i;
  }
  const auto width = static_cast<std::size_t>(trial.spec.embedding());
  for (std::size_t i = 0; i < trial.batch->ids(kDeepTable).size(); ++i) {
    for (std::size_t k = 0; k < width; ++k) {
      double& w = trial.oracle.deep.at(trial.batch->ids(kDeepTable)[i])[k];
      EXPECT_TRUE(near(trial.batch->gradients(kDeepTable)[i * width + k], 0.5 * trial.difference(w))) << i;
    }
  }
  for (const auto& p : trial.program->parameters().parameters) {
    for (std::size_t e = 0; e < p.count; ++e) {
      EXPECT_TRUE(
          near(trial.gradient[p.offset + e], 0.5 * trial.difference(trial.oracle.dense.at(p.name)[e])))
          << p.name << " " << e;
    }
  }
}

TEST_P(Shapes, PassesAddUp) {
  Trial whole(spec()), parts(spec());
  EXPECT_NEAR(whole.step(Trial::kRows), parts.step(5), 1e-4);
  for (std::size_t t = 0; t < kTables; ++t) {
    const auto a = whole.batch->gradients(t), b = parts.batch->gradients(t);
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5);
  }
  for (std::size_t i = 0; i < whole.gradient.size(); ++i)
    EXPECT_NEAR(whole.gradient[i], parts.gradient[i], 1e-5);
}

INSTANTIATE_TEST_SUITE_P(All, Shapes, ::testing::Range(0, 4));

TEST(WideAndDeepBatch, EachRowTravelsOnce) {
  Trial trial(spec_of({4}, {{0, 1}}));
  std::set<std::uint64_t> deep, wide;
  for (std::size_t i = 0; i < trial.tokens.size(); ++i)
    deep.insert(value_id(static_cast<std::int64_t>(i) % Trial::kFields, trial.tokens[i]));
  wide = deep;
  for (std::size_t i = 0; i < trial.tokens.size(); i += Trial::kFields) {
    const std::uint64_t values[] = {value_id(0, trial.tokens[i]), value_id(1, trial.tokens[i + 1])};
    wide.insert(cross_id(0, values));
  }
  EXPECT_THAT(trial.batch->ids(kDeepTable), ::testing::ElementsAreArray(deep));  // a set is in order
  EXPECT_THAT(trial.batch->ids(kWideTable), ::testing::ElementsAreArray(wide));
}

TEST(WideAndDeepBatch, GradientsGoWhereTheCallerWantsThem) {
  Trial here(spec_of({4}, {})), there(spec_of({4}, {}));
  std::vector<float> memory(there.batch->max_floats(kDeepTable), -1);
  there.batch->place_gradients(kDeepTable, memory);
  here.step(Trial::kRows);
  there.step(Trial::kRows);
  const auto own = here.batch->gradients(kDeepTable);
  EXPECT_EQ(there.batch->gradients(kDeepTable).data(), memory.data());
  EXPECT_TRUE(std::equal(own.begin(), own.end(), memory.begin()));
  EXPECT_EQ(memory.back(), -1);  // values repeat: not all of it is used
}

TEST(WideAndDeepBatch, AllocatesNothingAfterItsMaking) {
  Trial trial(spec_of({7}, {{0, 1}}));
  trial.step(Trial::kRows);
  trial.step(5);
  const std::int64_t before = allocations_of_this_thread();
  for (int i = 0; i < 10; ++i) {
    for (auto& token : trial.tokens) token = static_cast<std::int32_t>(trial.rng.below(1000));
    trial.batch->look_up(trial.tokens);
    trial.batch->clear_gradients();
    trial.batch->gather(2, 5, trial.program->batch());
    trial.batch->scatter(2, 5, trial.program->batch());
  }
  EXPECT_EQ(allocations_of_this_thread(), before);
}

}  // namespace
}  // namespace paceline::model

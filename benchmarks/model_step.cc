// How long a training step computes, without exchange and data: forward, backward, SGD. One core: run it
// under taskset.
//
//   model_step [--model mlp|cnn|gpt] [--batch N] [--bf16] [--ops] [--tiny]
//
// Prints the median step, samples a second, and the rate of oneDNN's matrix product measured beside it;
// --ops: the time of each operation.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/rng.h"
#include "base/status.h"
#include "runtime/model/build.h"
#include "runtime/tensor/compiler.h"
#include "runtime/tensor/cpu/cpu_device.h"

namespace paceline {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

struct Options {
  std::string model = "cnn";
  std::int64_t batch = 0;  // 0: the model's own
  bool bf16 = false;
  bool ops = false;
  bool tiny = false;
};

class OperationTimes final : public tensor::OperationObserver {
 public:
  void begin() override { begin_ = Clock::now(); }
  void end(std::string_view operation, std::string_view name) override {
    const double time = microseconds_since(begin_);
    const std::string key = std::string(name) + ": " + std::string(operation);
    if (!times_.contains(key)) order_.push_back(key);
    times_[key].push_back(time);
  }
  void print() const {
    for (const auto& key : order_) std::printf("  %10.1f us  %s\n", median(times_.at(key)), key.c_str());
  }

 private:
  Clock::time_point begin_;
  std::vector<std::string> order_;
  std::map<std::string, std::vector<double>> times_;
};

v1::ModelSpec model_spec(const std::string& name) {
  v1::ModelSpec spec;
  if (name == "mlp") {
    spec.mutable_mlp()->add_hidden(128);
    spec.mutable_mlp()->set_classes(10);
  } else if (name == "gpt") {  // as benchmarks/peers/gpt_torch.py
    spec.mutable_gpt()->set_layers(4);
    spec.mutable_gpt()->set_heads(4);
    spec.mutable_gpt()->set_width(128);
    spec.mutable_gpt()->set_block_size(64);
    spec.mutable_gpt()->set_vocabulary_size(256);
  } else {
    spec.mutable_cnn()->add_channels(16);
    spec.mutable_cnn()->add_channels(32);
    spec.mutable_cnn()->set_kernel_size(3);
    spec.mutable_cnn()->add_hidden(128);
    spec.mutable_cnn()->set_classes(10);
  }
  return spec;
}

// A compiled model with random weights and samples.
struct Bench {
  std::unique_ptr<tensor::Device> device = tensor::make_cpu_device({});
  std::unique_ptr<tensor::Program> program;
  std::vector<float> weights;
  std::vector<float> gradients;

  absl::Status prepare(const model::Model& model, const data::SampleShape& sample, std::int64_t rows,
                       bool bf16) {
    tensor::GraphBuilder graph;
    PL_RETURN_IF_ERROR(model.build(graph, sample));
    const auto precision = bf16 ? tensor::Precision::kBF16 : tensor::Precision::kF32;
    PL_ASSIGN_OR_RETURN(program, tensor::compile(graph, *device, {rows, precision, tensor::Mode::kTraining}));
    weights.resize(program->parameters().elements);
    gradients.resize(weights.size());
    program->bind(weights, gradients);
    program->initialize(1, weights);
    Rng rng(1, 2);
    for (float& v : program->batch().inputs) v = rng.normal();
    for (auto& t : program->batch().tokens) t = static_cast<std::int32_t>(rng.below(256));
    for (auto& l : program->batch().labels) l = static_cast<std::int32_t>(rng.below(10));
    return absl::OkStatus();
  }
  void forward(std::int64_t rows) { PL_CHECK(program->forward(rows).ok(), "the CPU has no errors"); }
  void step(std::int64_t rows) {
    program->weights_changed();
    forward(rows);
    PL_CHECK(program->backward(1.0F / static_cast<float>(rows), false, nullptr).ok(),
             "the CPU has no errors");
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] -= 0.01F * gradients[i];
  }
  double median_step(std::int64_t rows, int steps) {
    std::vector<double> times;
    for (int i = 0; i < steps + 2; ++i) {
      const auto begin = Clock::now();
      step(rows);
      if (i >= 2) times.push_back(microseconds_since(begin));
    }
    return median(times);
  }
};

// A product of 512 x 512 x 512 through the same path that models take.
class Square final : public model::Model {
 public:
  absl::Status build(tensor::GraphBuilder& graph, const data::SampleShape&) const override {
    graph.softmax_cross_entropy(graph.dense("square", graph.input({512}), 512));
    return graph.status();
  }
};

absl::StatusOr<double> matrix_gigaflops(bool bf16) {
  Bench bench;
  PL_RETURN_IF_ERROR(bench.prepare(Square(), {}, 512, bf16));
  struct Product final : tensor::OperationObserver {
    void begin() override { from = Clock::now(); }
    void end(std::string_view operation, std::string_view) override {
      if (operation == "linear") times.push_back(microseconds_since(from));
    }
    Clock::time_point from;
    std::vector<double> times;
  } product;
  bench.step(512);
  bench.program->observe(&product);
  for (int i = 0; i < 15; ++i) bench.forward(512);
  return 2.0 * 512 * 512 * 512 / median(product.times) * 1e-3;
}

absl::Status run(const Options& options) {
  const bool mlp = options.model == "mlp", gpt = options.model == "gpt";
  const std::int64_t rows = options.batch > 0 ? options.batch : gpt ? 12 : mlp ? 16 : 128;
  const int steps = options.tiny ? 3 : mlp ? 3000 : 60;
  data::SampleShape sample;
  sample.dims = gpt ? tensor::Dims{64} : mlp ? tensor::Dims{1, 8, 8} : tensor::Dims{1, 28, 28};
  if (gpt) {
    sample.kind = data::InputKind::kTokens;
    sample.labels = 64;
  }
  PL_ASSIGN_OR_RETURN(const auto model, model::make_model(model_spec(options.model), {}));
  Bench bench;
  PL_RETURN_IF_ERROR(bench.prepare(*model, sample, rows, options.bf16));
  const double time = bench.median_step(rows, steps);
  PL_ASSIGN_OR_RETURN(const double rate, matrix_gigaflops(options.bf16));
  std::printf("%s batch %lld %s: %.1f us a step, %.0f samples/s; oneDNN 512^3: %.0f GFLOP/s\n",
              options.model.c_str(), static_cast<long long>(rows), options.bf16 ? "bf16" : "fp32", time,
              static_cast<double>(rows) / time * 1e6, rate);
  if (!options.ops) return absl::OkStatus();
  OperationTimes times;
  bench.program->observe(&times);
  for (int i = 0; i < steps; ++i) bench.step(rows);
  times.print();
  return absl::OkStatus();
}

}  // namespace
}  // namespace paceline

int main(int argc, char** argv) {
  paceline::Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--model" && i + 1 < argc) {
      options.model = argv[++i];
    } else if (argument == "--batch" && i + 1 < argc) {
      options.batch = std::atoll(argv[++i]);
    } else if (argument == "--bf16") {
      options.bf16 = true;
    } else if (argument == "--ops") {
      options.ops = true;
    } else if (argument == "--tiny") {
      options.tiny = true;
    } else {
      std::fprintf(stderr, "usage: model_step [--model mlp|cnn|gpt] [--batch N] [--bf16] [--ops] [--tiny]\n");
      return 2;
    }
  }
  const absl::Status status = paceline::run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "model_step: %s\n", std::string(status.message()).c_str());
  return 1;
}

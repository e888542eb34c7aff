// A member whose data set hangs: while there is a file, no read of a batch returns, or each takes so many
// milliseconds. Else it is as paceline-worker. Parameters of the data set: member, "worker-1" (of its first
// incarnation), file, and milliseconds, where it is only slow; pace, milliseconds that a batch takes at all
// members, as if an accelerator computed meanwhile. With held-out there are samples to evaluate.
//
// Its model "laborious" computes more than it needs: `work` times at all members, and `factor` times as often
// at `member`. What it computes is the same.

#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "runtime/bin/run_member.h"
#include "runtime/tensor/graph.h"

namespace {

namespace data = paceline::data;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

class HangingData final : public data::Dataset {
 public:
  HangingData(std::string file, int milliseconds, int pace)
      : file_(std::move(file)), delay_(milliseconds), pace_(pace) {
    shape_.dims = {8};
    shape_.classes = 2;
  }
  const data::SampleShape& shape() const override { return shape_; }
  std::int64_t size() const override { return 4096; }
  absl::Status fetch(std::span<const std::int64_t> indices, std::uint64_t /*augmentation_seed*/,
                     const data::BatchView& batch) const override {
    std::this_thread::sleep_for(pace_);
    while (!file_.empty() && ::access(file_.c_str(), F_OK) == 0) {
      if (delay_ == std::chrono::milliseconds(0)) ::pause();
      std::this_thread::sleep_for(delay_);
      break;
    }
    for (std::size_t row = 0; row < indices.size(); ++row) {
      batch.labels[row] = static_cast<std::int32_t>(indices[row] % 2);
      for (std::size_t i = 0; i < 8; ++i) {
        batch.inputs[8 * row + i] = static_cast<float>((indices[row] >> i) & 1);
      }
    }
    return absl::OkStatus();
  }

 private:
  data::SampleShape shape_;
  const std::string file_;  // empty: it never hangs
  const std::chrono::milliseconds delay_, pace_;
};

absl::StatusOr<data::Datasets> make_hanging_data(const std::map<std::string, std::string>& parameters,
                                                 std::uint64_t /*seed*/) {
  const std::string self = variable("PACELINE_ROLE") + "-" + variable("PACELINE_INDEX");
  const bool hangs = parameters.at("member") == self && variable("PACELINE_INCARNATION") == "0";
  data::Datasets sets;
  const auto number = [&](const char* name) {
    const auto found = parameters.find(name);
    return found == parameters.end() ? 0 : std::stoi(found->second);
  };
  sets.train = std::make_shared<HangingData>(hangs ? parameters.at("file") : "", number("milliseconds"),
                                             number("pace"));
  if (parameters.contains("held-out")) sets.test = std::make_shared<HangingData>("", 0, number("pace"));
  return sets;
}

class LaboriousModel final : public paceline::model::Model {
 public:
  explicit LaboriousModel(int work) : work_(work) {}
  absl::Status build(paceline::tensor::GraphBuilder& graph, const data::SampleShape& sample) const override {
    constexpr std::int64_t kWidth = 1024;
    const paceline::tensor::Value hidden = graph.tanh(graph.dense("in", graph.input(sample.dims), kWidth));
    paceline::tensor::Value labour = hidden;
    for (int i = 0; i < work_; ++i) labour = graph.gelu(labour);
    graph.softmax_cross_entropy(
        graph.dense("out", graph.add(hidden, graph.scale(labour, 0)), sample.classes));
    return graph.status();
  }

 private:
  const int work_;
};

absl::StatusOr<std::unique_ptr<paceline::model::Model>> make_laborious_model(
    const paceline::model::Parameters& parameters) {
  const std::string self = variable("PACELINE_ROLE") + "-" + variable("PACELINE_INDEX");
  const int factor = parameters.at("member") == self ? std::stoi(parameters.at("factor")) : 1;
  return std::make_unique<LaboriousModel>(std::stoi(parameters.at("work")) * factor);
}

}  // namespace

int main(int argc, char** argv) {
  paceline::trainer::Registry registry;
  registry.add_dataset("hanging", make_hanging_data);
  registry.add_model("laborious", make_laborious_model);
  return paceline::run_member(argc, argv, std::move(registry));
}

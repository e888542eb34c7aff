// A member whose model counts samples: each lowers the weight of its kind by the same power of two. So every
// sum is exact, in any order and on any number of members, and the weights say how many of which samples were
// taken.
//
// Sample i is of kind i % kKinds, and has that one input. Its logit is the kind's weight, which begins at 1,
// so much enlarged that its sigmoid is 1 to the bit; its label is 0, and with it the logit's gradient 1.

#include <memory>
#include <utility>

#include "runtime/bin/run_member.h"

namespace {

namespace data = paceline::data;
namespace model = paceline::model;
namespace tensor = paceline::tensor;

constexpr std::int64_t kKinds = 64;
constexpr float kEnlarged = 64;

class Samples final : public data::Dataset {
 public:
  Samples() {
    shape_.dims = {kKinds};
    shape_.classes = 2;
  }
  const data::SampleShape& shape() const override { return shape_; }
  std::int64_t size() const override { return 64 * kKinds; }
  absl::Status fetch(std::span<const std::int64_t> indices, std::uint64_t /*augmentation_seed*/,
                     const data::BatchView& batch) const override {
    for (std::size_t row = 0; row < indices.size(); ++row) {
      batch.labels[row] = 0;
      const std::int64_t kind = indices[row] % kKinds;
      for (std::int64_t i = 0; i < kKinds; ++i)
        batch.inputs[row * kKinds + static_cast<std::size_t>(i)] = i == kind ? 1.0F : 0.0F;
    }
    return absl::OkStatus();
  }

 private:
  data::SampleShape shape_;
};

class Counters final : public model::Model {
 public:
  absl::Status build(tensor::GraphBuilder& graph, const data::SampleShape& sample) const override {
    const tensor::Value weights =
        graph.parameter("weights", {1, sample.dims[0]}, tensor::Init::constant(1), false);
    graph.sigmoid_cross_entropy(graph.scale(graph.linear(graph.input(sample.dims), weights), kEnlarged));
    return graph.status();
  }
};

}  // namespace

int main(int argc, char** argv) {
  paceline::trainer::Registry registry;
  registry.add_dataset("samples", [](const auto&, std::uint64_t) -> absl::StatusOr<data::Datasets> {
    data::Datasets sets;
    sets.train = std::make_shared<Samples>();
    return sets;
  });
  registry.add_model("counters", [](const auto&) -> absl::StatusOr<std::unique_ptr<model::Model>> {
    return std::make_unique<Counters>();
  });
  return paceline::run_member(argc, argv, std::move(registry));
}

#include "moons_data.h"

#include <cmath>
#include <cstdlib>
#include <memory>
#include <numbers>
#include <vector>

#include "base/rng.h"

namespace moons {

namespace {

using paceline::Rng;
namespace data = paceline::data;

struct Point {
  float x, y;
  std::int32_t label;
};

class Moons final : public data::Dataset {
 public:
  explicit Moons(std::vector<Point> points) : points_(std::move(points)) {
    shape_.dims = {2};
    shape_.classes = 2;
  }
  const data::SampleShape& shape() const override { return shape_; }
  std::int64_t size() const override { return static_cast<std::int64_t>(points_.size()); }
  absl::Status fetch(std::span<const std::int64_t> indices, std::uint64_t /*augmentation_seed*/,
                     const data::BatchView& batch) const override {
    for (std::size_t row = 0; row < indices.size(); ++row) {
      const Point& point = points_[static_cast<std::size_t>(indices[row])];
      batch.inputs[2 * row] = point.x;
      batch.inputs[2 * row + 1] = point.y;
      batch.labels[row] = point.label;
    }
    return absl::OkStatus();
  }

 private:
  data::SampleShape shape_;
  std::vector<Point> points_;
};

std::vector<Point> draw(std::int64_t count, float noise, Rng random) {
  std::vector<Point> points;
  for (std::int64_t i = 0; i < count; ++i) {
    const float angle = std::numbers::pi_v<float> * random.uniform();
    const bool lower = random.below(2) == 1;
    const float x = lower ? 1 - std::cos(angle) : std::cos(angle);
    const float y = lower ? 0.5F - std::sin(angle) : std::sin(angle);
    points.push_back({x + noise * random.normal(), y + noise * random.normal(), lower ? 1 : 0});
  }
  return points;
}

double number(const std::map<std::string, std::string>& parameters, const std::string& name,
              double otherwise) {
  const auto at = parameters.find(name);
  return at == parameters.end() ? otherwise : std::strtod(at->second.c_str(), nullptr);
}

}  // namespace

absl::StatusOr<data::Datasets> make_moons(const std::map<std::string, std::string>& parameters,
                                          std::uint64_t seed) {
  const auto samples = static_cast<std::int64_t>(number(parameters, "samples", 4000));
  if (samples < 8 || samples > 10'000'000) {
    return absl::InvalidArgumentError("two-moons: samples must be in 8..10000000");
  }
  const auto noise = static_cast<float>(number(parameters, "noise", 0.1));
  data::Datasets sets;
  sets.train = std::make_shared<Moons>(draw(samples, noise, Rng(seed, 1)));
  return sets;  // the job's testFraction holds some of them out
}

}  // namespace moons

// Delay-compensated asynchronous training on real servers, over both transports.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "base/rng.h"
#include "servers_world.h"

namespace paceline::pserver {
namespace {

constexpr double kRate = 0.5, kLambda = 0.25;

class ServersCompensation : public ServersTest {
 protected:
  WorldSpec spec(WorldSpec spec) const {
    spec = ServersTest::spec(std::move(spec));
    spec.mode.set_synchronization(v1::ParameterServerSpec::ASYNCHRONOUS);
    spec.mode.set_delay_compensation(kLambda);
    return spec;
  }
};
INSTANTIATE_TEST_SUITE_P(Media, ServersCompensation, all_media(), medium_name);

Floats random_floats(Rng& rng, std::size_t n) {
  Floats values(n);
  for (float& value : values) value = rng.normal();
  return values;
}

// The formula of the documentation, in doubles: `gradient` is a unit's part of the mean, so `parts` times it
// is the unit's mean.
Floats updated(const Floats& weights, const Floats& read, const Floats& gradient, double parts, double clip) {
  std::vector<double> sum(weights.size());
  double squares = 0;
  for (std::size_t i = 0; i < sum.size(); ++i) {
    const double mean = parts * gradient[i];
    sum[i] = (mean + kLambda * mean * mean * (double{weights[i]} - read[i])) / parts;
    squares += sum[i] * sum[i];
  }
  const double factor = clip > 0 ? std::min(1.0, clip / std::sqrt(squares)) : 1;
  Floats next(weights.size());
  for (std::size_t i = 0; i < next.size(); ++i) {
    next[i] = static_cast<float>(weights[i] - kRate * factor * sum[i]);
  }
  return next;
}

void expect_near(std::span<const float> found, const Floats& expected) {
  for (std::size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(found[i], expected[i], 1e-5 * (1 + std::abs(expected[i]))) << "element " << i;
  }
}

// Every element is compensated by its own delay, wherever it lies in slices, blocks and servers, and a norm
// is that of the compensated gradient. What a worker has read is of its own last turn.
TEST_P(ServersCompensation, IsOfEachElementAndOfWhatTheWorkerReadLast) {
  for (const double clip : {0.0, 20.0}) {
    SCOPED_TRACE(clip);
    WorldSpec spec = this->spec({.elements = 50001, .slice_bytes = 40000});
    spec.optimizer.set_clip_norm(clip);
    Rng rng(11, 0);
    const Floats w0 = random_floats(rng, spec.elements);
    const Floats a = random_floats(rng, spec.elements), b = random_floats(rng, spec.elements),
                 c = random_floats(rng, spec.elements);
    ServersWorld world(spec);
    ASSERT_TRUE(world.begin(w0).ok());
    const double parts = spec.workers;
    const auto give = [&](int w, const Floats& gradient, std::int64_t staleness) {
      std::copy(gradient.begin(), gradient.end(), world.gradient(w).begin());
      ASSERT_TRUE(world.push_and_commit(w).ok());
      const TurnResult turn = world.turn(w);
      EXPECT_EQ(turn.staleness, staleness);
    };
    for (int w = 0; w < 2; ++w) ASSERT_TRUE(world.client(w).wait_turn(world.deadline()).ok());
    give(0, a, 0);
    const Floats w1 = updated(w0, w0, a, parts, clip);
    expect_near(world.weights(0), w1);
    give(1, b, 1);
    const Floats w2 = updated(w1, w0, b, parts, clip);
    expect_near(world.weights(1), w2);
    give(0, c, 1);
    expect_near(world.weights(0), updated(w2, w1, c, parts, clip));
  }
}

}  // namespace
}  // namespace paceline::pserver

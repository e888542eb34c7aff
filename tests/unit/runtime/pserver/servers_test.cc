// Workers and servers together, over both transports.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <future>
#include <limits>

#include "base/rng.h"
#include "runtime/collective/reduce.h"
#include "runtime/optimizer/optimizer.h"
#include "servers_world.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/assert_ok.h"

namespace paceline::pserver {
namespace {

class Servers : public ServersTest {};
INSTANTIATE_TEST_SUITE_P(Media, Servers, all_media(), medium_name);

Floats random_floats(Rng& rng, std::size_t n) {
  Floats values(n);
  for (float& value : values) value = rng.normal();
  return values;
}

// What all-reduce does: the sum in the order of ranks, and the optimiser over the whole vector.
struct AllReduced {
  optimizer::Optimizer optimizer;
  Floats weights;

  void step(const std::vector<Floats>& gradients, double rate) {
    std::vector<const std::byte*> inputs;
    for (const Floats& gradient : gradients)
      inputs.push_back(reinterpret_cast<const std::byte*>(gradient.data()));
    Floats sum(weights.size());
    auto* const out = reinterpret_cast<std::byte*>(sum.data());
    collective::reduce({.outputs = {&out, 1}, .inputs = inputs, .count = sum.size()});
    PL_ASSERT_OK(report, optimizer.step(weights, sum, rate));
  }
};

tensor::ParameterLayout random_layout(Rng& rng, std::size_t elements) {
  tensor::ParameterLayout layout{.parameters = {}, .elements = elements, .trained_elements = elements};
  for (std::size_t at = 0; at < elements;) {
    const std::size_t count = std::min<std::size_t>(elements - at, 1 + rng.below(900));
    layout.parameters.push_back(
        {.name = {}, .dims = {}, .offset = at, .count = count, .decay = rng.below(2) == 0});
    at += count;
  }
  return layout;
}

// The unit's gradient, so that units may be computed by anybody.
Floats gradient_of(std::uint64_t seed, Unit unit, std::size_t n) {
  Rng rng(seed, 1000 + static_cast<std::uint64_t>(unit));
  return random_floats(rng, n);
}

TEST_P(Servers, SynchronousTrainingIsAllReduceBitForBit) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, 0);
    WorldSpec spec = this->spec({.workers = static_cast<int>(1 + rng.below(4)),
                                 .servers = static_cast<int>(1 + rng.below(3)),
                                 .elements = rng.below(6) == 0 ? 1 + rng.below(40) : 1 + rng.below(30000),
                                 .slice_bytes = 64 + rng.below(20000)});
    spec.layout = random_layout(rng, spec.elements);
    spec.optimizer.set_type(static_cast<v1::OptimizerSpec::Type>(seed % 4));
    spec.optimizer.set_learning_rate(0.01);
    spec.optimizer.set_momentum(seed % 4 == 0 ? 0.9 : 0);
    spec.optimizer.set_beta1(0.9);
    spec.optimizer.set_beta2(0.99);
    spec.optimizer.set_epsilon(1e-6);
    spec.optimizer.set_weight_decay(0.02);
    spec.total_steps = 4;
    if (seed % 3 == 0) spec.mode.set_synchronization(v1::ParameterServerSpec::BOUNDED_STALENESS);  // of 0
    const std::size_t n = spec.elements;
    const Floats initial = random_floats(rng, n);

    auto reference = optimizer::Optimizer::create(spec.optimizer, spec.layout);
    ASSERT_TRUE(reference.ok()) << reference.status();
    AllReduced expected{std::move(*reference), initial};
    std::vector<Floats> after = {initial};
    for (Step step = 0; step < spec.total_steps; ++step) {
      std::vector<Floats> gradients;
      for (int w = 0; w < spec.workers; ++w) {
        gradients.push_back(gradient_of(seed, step * spec.workers + w, n));
      }
      expected.step(gradients, 0.01);
      after.push_back(expected.weights);
    }

    ServersWorld world(spec);
    ASSERT_TRUE(world.begin(initial).ok());
    world.each_worker([&](int w) {
      Rng mine(seed, 500 + static_cast<std::uint64_t>(w));
      for (Step step = 0; step <= spec.total_steps; ++step) {
        const TurnResult turn = world.turn(w);
        EXPECT_EQ(turn.version, step);
        EXPECT_EQ(turn.step, step);
        EXPECT_EQ(std::memcmp(world.weights(w).data(), after[static_cast<std::size_t>(step)].data(),
                              n * sizeof(float)),
                  0)
            << "worker " << w << " after " << step << " steps";
        ASSERT_EQ(turn.finished, step == spec.total_steps);
        if (turn.finished) break;
        EXPECT_EQ(turn.unit, step * spec.workers + w);
        const Floats gradient = gradient_of(seed, turn.unit, n);
        // Ranges from the end, cut anywhere.
        for (std::size_t end = n; end > 0;) {
          const std::size_t begin = end - std::min<std::size_t>(end, 1 + mine.below(n));
          std::copy(gradient.begin() + static_cast<std::ptrdiff_t>(begin),
                    gradient.begin() + static_cast<std::ptrdiff_t>(end),
                    world.gradient(w).begin() + static_cast<std::ptrdiff_t>(begin));
          ASSERT_TRUE(world.client(w).push(begin, end).ok());
          end = begin;
        }
        ASSERT_TRUE(world.client(w).commit({.loss_sum = 2, .samples = 3}).ok());
      }
      const ClientCounters bytes = world.client(w).counters();
      const auto steps = static_cast<std::uint64_t>(spec.total_steps);
      EXPECT_EQ(bytes.bytes_sent, steps * n * sizeof(float));
      EXPECT_EQ(bytes.bytes_received, (steps + 1) * n * sizeof(float));
      EXPECT_EQ(world.client(w).staleness().applied(), spec.total_steps);
      EXPECT_EQ(world.client(w).staleness().histogram(0), spec.total_steps);
    });
    world.end_well();
    std::uint64_t received = 0;
    for (int s = 0; s < spec.servers; ++s) {
      const v1::ServerStats stats = world.server(s).stats();
      EXPECT_EQ(stats.updates(), spec.total_steps);
      EXPECT_EQ(stats.gradients(), spec.total_steps * spec.workers);
      EXPECT_EQ(stats.queue(), 0);
      received += stats.bytes_received();
    }
    EXPECT_EQ(received, static_cast<std::uint64_t>(spec.total_steps * spec.workers) * n * sizeof(float));
  }
}

TEST_P(Servers, ClippingTakesTheNormOverAllServers) {
  WorldSpec spec = this->spec({.servers = 3, .elements = 5000});
  spec.optimizer.set_clip_norm(3);
  Rng rng(4, 0);
  const Floats initial = random_floats(rng, spec.elements);
  ServersWorld world(spec);
  auto optimizer = optimizer::Optimizer::create(spec.optimizer, world.layout());
  AllReduced expected{std::move(*optimizer), initial};
  for (Step step = 0; step < spec.total_steps; ++step) {
    expected.step({gradient_of(4, 2 * step, spec.elements), gradient_of(4, 2 * step + 1, spec.elements)},
                  0.5);
  }
  ASSERT_TRUE(world.begin(initial).ok());
  world.each_worker([&](int w) {
    while (true) {
      const TurnResult turn = world.turn(w);
      if (turn.finished) break;
      const Floats gradient = gradient_of(4, turn.unit, spec.elements);
      std::copy(gradient.begin(), gradient.end(), world.gradient(w).begin());
      ASSERT_TRUE(world.push_and_commit(w).ok());
    }
    for (std::size_t i = 0; i < spec.elements; ++i) {
      ASSERT_NEAR(world.weights(w)[i], expected.weights[i], 1e-6) << i;
    }
  });
}

TEST_P(Servers, ANormThatIsNotFiniteEndsTheView) {
  WorldSpec spec = this->spec();
  spec.optimizer.set_clip_norm(3);
  ServersWorld world(spec, 1);
  world.each_worker([&](int w) {
    ASSERT_TRUE(world.client(w).wait_turn(world.deadline()).ok());
    world.gradient(w)[7] = std::numeric_limits<float>::quiet_NaN();
    ASSERT_TRUE(world.push_and_commit(w).ok());
    EXPECT_EQ(world.client(w).wait_turn(world.deadline()).status().code(), absl::StatusCode::kOutOfRange);
  });
}

// Every unit adds 1 to every element: then all elements are equal in every version, on all servers, and say
// how many units are in it.
TEST_P(Servers, AsynchronousUpdatesAreAppliedOnceAndAtOnceOnAllServers) {
  WorldSpec spec = this->spec({.workers = 3,
                               .servers = 3,
                               .elements = 7000,
                               .optimizer = sgd(1),
                               .mode = asynchronous(),
                               .total_steps = 40});
  ServersWorld world(spec, 0);
  const auto units = static_cast<float>(spec.total_steps * spec.workers);
  world.each_worker([&](int w) {
    for (Version last = -1;;) {
      const TurnResult turn = world.turn(w);
      EXPECT_GT(turn.version, last);
      last = turn.version;
      const auto value = static_cast<float>(turn.version);
      ASSERT_EQ(std::count(world.weights(w).begin(), world.weights(w).end(), value),
                static_cast<std::ptrdiff_t>(spec.elements))
          << "version " << turn.version << " is not whole";
      if (turn.finished) break;
      ASSERT_TRUE(world.push_same(w, -1.0f, {.loss_sum = 1, .samples = 1}).ok());
    }
    EXPECT_EQ(world.weights(w)[0], units);
  });
  std::int64_t applied = 0;
  for (int w = 0; w < spec.workers; ++w) applied += world.client(w).staleness().applied();
  EXPECT_EQ(applied, static_cast<std::int64_t>(units));
  world.end_well();
}

TEST_P(Servers, SnapshotsAreOneVersionWhileTrainingGoesOn) {
  WorldSpec spec = this->spec({.workers = 2,
                               .servers = 3,
                               .elements = 20000,
                               .optimizer = sgd(1, 0.5),
                               .mode = asynchronous(),
                               .total_steps = 200});
  ServersWorld world(spec, 0);
  // What version v holds, by the same arithmetic.
  std::vector<float> value = {0}, momentum = {0};
  for (Unit u = 0; u < spec.total_steps * 2; ++u) {
    momentum.push_back(0.5f * momentum.back() - 1.0f);
    value.push_back(value.back() - momentum.back());
  }
  Floats weights(spec.elements), state(spec.elements);
  const std::vector<std::span<float>> states = {state};
  int taken = 0;
  const auto take = [&](const TurnResult& turn) {
    PL_ASSERT_OK(info, world.client(0).take_snapshot(weights, states, world.deadline()));
    EXPECT_GE(info->version, turn.version);
    EXPECT_EQ(info->optimizer_steps, info->version);
    EXPECT_EQ(info->units.count(), info->version);
    EXPECT_EQ(info->step, info->version / 2);
    const auto v = static_cast<std::size_t>(info->version);
    for (std::size_t i = 0; i < spec.elements; ++i) {
      ASSERT_EQ(weights[i], value[v]) << i;
      ASSERT_EQ(state[i], momentum[v]) << i;
    }
    ++taken;
  };
  train_beside_snapshots(world, take,
                         [&](int w, const TurnResult&) { ASSERT_TRUE(world.push_same(w, -1.0f).ok()); });
  EXPECT_GE(taken, 1);
  world.end_well();
}

// That the last one was taken travels on another connection than the wish for the next.
TEST_P(Servers, SnapshotsMayFollowOneAnotherAtOnce) {
  WorldSpec spec = this->spec();
  ServersWorld world(spec, 2);
  ASSERT_TRUE(world.client(0).wait_turn(world.deadline()).ok());
  Floats weights(spec.elements);
  for (int k = 0; k < 500; ++k) {
    ASSERT_TRUE(world.client(0).begin_snapshot().ok());
    const auto taken = world.client(0).take_snapshot(weights, {}, world.deadline());
    ASSERT_TRUE(taken.ok()) << k << ": " << taken.status();
  }
  EXPECT_EQ(weights, Floats(spec.elements, 2));
  world.end_well();
}

TEST_P(Servers, ASnapshotGoesOnWithAnotherNumberOfServersBitForBit) {
  WorldSpec spec = this->spec({.workers = 1, .elements = 3000, .total_steps = 6});
  spec.optimizer.set_type(v1::OptimizerSpec::ADAM);
  spec.optimizer.set_beta1(0.9);
  spec.optimizer.set_beta2(0.99);
  spec.optimizer.set_epsilon(1e-6);
  Rng rng(8, 0);
  const Floats initial = random_floats(rng, spec.elements);
  const auto work = [&](ServersWorld& world, Step until) {
    while (true) {
      const TurnResult turn = world.turn(0);
      if (turn.finished || turn.step == until) return;
      const Floats gradient = gradient_of(8, turn.unit, spec.elements);
      std::copy(gradient.begin(), gradient.end(), world.gradient(0).begin());
      ASSERT_TRUE(world.push_and_commit(0).ok());
    }
  };
  Floats whole, weights(spec.elements), mean(spec.elements), square(spec.elements);
  {
    ServersWorld world(spec);
    ASSERT_TRUE(world.begin(initial).ok());
    work(world, spec.total_steps);
    whole.assign(world.weights(0).begin(), world.weights(0).end());
  }
  SnapshotInfo info;
  {
    ServersWorld world(spec);
    ASSERT_TRUE(world.begin(initial).ok());
    work(world, 3);
    ASSERT_TRUE(world.client(0).begin_snapshot().ok());
    EXPECT_EQ(world.client(0).begin_snapshot().code(), absl::StatusCode::kFailedPrecondition);
    const std::vector<std::span<float>> states = {mean, square};
    PL_ASSERT_OK(taken, world.client(0).take_snapshot(weights, states, world.deadline()));
    info = *taken;
    EXPECT_EQ(info.step, 3);
  }
  spec.servers = 3;
  ServersWorld world(spec);
  InitialState state;
  state.weights = weights;
  state.optimizer = {{"exp_avg", mean}, {"exp_avg_sq", square}};
  state.optimizer_steps = info.optimizer_steps;
  state.start = {info.units, info.step, spec.total_steps};
  ASSERT_TRUE(world.client(0).initialize(state, world.deadline()).ok());
  work(world, spec.total_steps);
  EXPECT_EQ(std::memcmp(whole.data(), world.weights(0).data(), whole.size() * sizeof(float)), 0);
}

TEST_P(Servers, DelayCompensationUsesWhatTheWorkerRead) {
  WorldSpec spec = this->spec({.elements = 100, .mode = asynchronous()});
  spec.mode.set_delay_compensation(0.25);
  ServersWorld world(spec, 1);
  for (int w = 0; w < 2; ++w) ASSERT_TRUE(world.client(w).wait_turn(world.deadline()).ok());
  ASSERT_TRUE(world.push_same(0, 2.0f).ok());
  ASSERT_TRUE(world.client(0).wait_turn(world.deadline()).ok());
  EXPECT_EQ(world.weights(0)[3], 0.0f) << "nothing was late: 1 - 0.5 * 2";
  ASSERT_TRUE(world.push_same(1, 4.0f).ok());
  const TurnResult turn = world.turn(1);
  EXPECT_EQ(turn.staleness, 1);
  // g of the unit's mean is 2 * 4: 4 + 0.25 * 8 * 8 * (0 - 1) / 2 = -4, and 0 - 0.5 * -4 = 2.
  EXPECT_EQ(world.weights(1)[3], 2.0f);
  EXPECT_EQ(world.weights(1)[99], 2.0f);
}

TEST_P(Servers, NothingIsAllocatedAfterTheFirstSteps) {
  WorldSpec spec = this->spec({.elements = 50000, .total_steps = 40});
  ServersWorld world(spec, 0);
  std::int64_t by_workers = 0, by_all = 0;
  for (Step step = 0; step < spec.total_steps; ++step) {
    const std::int64_t all = allocations_of_all_threads();
    const std::int64_t workers = allocations_of_this_thread();
    for (int w = 0; w < 2; ++w) ASSERT_TRUE(world.client(w).wait_turn(world.deadline()).ok());
    for (int w = 0; w < 2; ++w) ASSERT_TRUE(world.push_and_commit(w).ok());
    if (step < 10) continue;
    by_workers += allocations_of_this_thread() - workers;
    by_all += allocations_of_all_threads() - all;
  }
  EXPECT_EQ(by_workers, 0);
  // The policy's answers are vectors: a few small ones for each commit, in the sequencer's thread.
  EXPECT_LE(by_all, 30 * 2 * 12);
}

}  // namespace
}  // namespace paceline::pserver

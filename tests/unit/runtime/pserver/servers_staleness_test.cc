// Bounded staleness with s > 0 as workers see it, over both transports: what each one reads says how far it
// leads everybody, since worker w's gradients count in elements and in a row of its own.

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/guarded.h"
#include "base/text.h"
#include "rows_world.h"

namespace paceline::pserver {
namespace {

class ServersStaleness : public ServersTest {};
INSTANTIATE_TEST_SUITE_P(Media, ServersStaleness, media(), medium_name);

enum class Fate { kCommits, kLeaves, kDies };

// One worker stands still in the turn of its clock `hold` until all others lead it by `staleness`; then it
// goes on, or away.
struct Trial {
  std::uint64_t seed = 0;
  std::int64_t staleness = 0;
  int slowest = 0;
  std::int64_t hold = 0;
  Fate fate = Fate::kCommits;
  Unit units = 0;  // of all steps
};

Trial make_trial(WorldSpec& spec, std::uint64_t seed) {
  Rng rng(seed, 11);
  Trial trial{.seed = seed, .staleness = static_cast<std::int64_t>(1 + rng.below(4))};
  trial.fate = static_cast<Fate>(seed % 3);
  spec.workers = static_cast<int>(2 + rng.below(4));
  spec.servers = static_cast<int>(1 + rng.below(3));
  const auto others = static_cast<std::uint64_t>(spec.workers - 1);
  trial.slowest = 1 + static_cast<int>(rng.below(others));  // worker 0 is who saves: it does not go away
  trial.hold = static_cast<std::int64_t>(rng.below(4));
  // Before all others lead by the bound nobody has begun more than hold + staleness + 1 units.
  spec.total_steps = trial.hold + trial.staleness + 2 + static_cast<Step>(rng.below(10));
  trial.units = spec.total_steps * spec.workers;
  spec.elements = static_cast<std::size_t>(spec.workers) + rng.below(4000);
  spec.slice_bytes = 64 + rng.below(4000);
  spec.optimizer = sgd(1);
  spec.mode.set_synchronization(v1::ParameterServerSpec::BOUNDED_STALENESS);
  spec.mode.set_staleness(trial.staleness);
  spec.tables = {table_of("t", 1 + rng.below(8))};
  spec.row_floats = spec.tables[0].dim;
  return trial;
}

// What is known of the workers without asking the servers, which learn of each change later.
struct Standing {
  explicit Standing(int workers) : begun(workers), gone(workers), lead(workers) {}
  std::vector<std::int64_t> begun;  // commits, each counted before it is sent
  std::vector<bool> gone;           // set before it goes
  std::vector<std::int64_t> lead;   // that each was seen to have over the slowest
};

class StaleWorkers {
 public:
  StaleWorkers(ServersWorld& world, const WorldSpec& spec, const Trial& trial)
      : world_(world), spec_(spec), trial_(trial), standing_(spec.workers) {}

  void train(int w) {
    Rng rng(trial_.seed, 50 + static_cast<std::uint64_t>(w));
    for (std::int64_t clock = 0;; ++clock) {
      const auto turn = world_.client(w).wait_turn(world_.deadline());
      ASSERT_TRUE(turn.ok()) << turn.status();
      const auto dense = dense_counts(w), rows = row_counts(w);
      if (::testing::Test::HasFatalFailure()) return;
      EXPECT_EQ(dense[static_cast<std::size_t>(w)], clock) << "a worker reads its own updates";
      if (turn->finished) {
        EXPECT_EQ(std::accumulate(dense.begin(), dense.end(), std::int64_t{0}), trial_.units);
        EXPECT_EQ(rows, dense);
        return;
      }
      check_read(w, clock, dense);
      check_read(w, clock, rows);
      dawdle(rng, w);
      if (w == trial_.slowest && clock == trial_.hold) {
        ASSERT_NO_FATAL_FAILURE(stand());
        if (trial_.fate != Fate::kCommits) return go_away(w);
      }
      ASSERT_NO_FATAL_FAILURE(commit(w));
    }
  }

 private:
  void dawdle(Rng& rng, int w) {
    const std::uint64_t most = w == trial_.slowest ? 3000 : 300;
    for (std::uint64_t k = rng.below(3) == 0 ? rng.below(most) : 0; k > 0; --k) std::this_thread::yield();
  }

  // How many gradients of each worker are in the weights: one number in all its elements, on all servers.
  std::vector<std::int64_t> dense_counts(int w) {
    const std::span<const float> weights = world_.weights(w);
    const auto workers = static_cast<std::size_t>(spec_.workers);
    std::vector<std::int64_t> counts(weights.begin(), weights.begin() + spec_.workers);
    for (std::size_t i = 0; i < weights.size(); ++i) {
      EXPECT_EQ(weights[i], static_cast<float>(counts[i % workers])) << i << " is of another version";
      if (::testing::Test::HasFailure()) break;
    }
    return counts;
  }

  std::vector<std::int64_t> row_counts(int w) {
    WorkerRows rows;
    rows.ids.resize(1);
    for (int other = 0; other < spec_.workers; ++other) rows.ids[0].push_back(static_cast<RowId>(other));
    const absl::Status pulled = rows.pull(world_, spec_.tables, w);
    EXPECT_TRUE(pulled.ok()) << pulled;
    std::vector<std::int64_t> counts;
    for (std::size_t k = 0; k < rows.ids[0].size(); ++k) {
      counts.push_back(static_cast<std::int64_t>(rows.value(0, k, spec_.tables[0].dim)));
    }
    return counts;
  }

  // Who begins `clock` has read all updates of the clocks up to clock - staleness - 1: so many of everybody.
  void check_read(int w, std::int64_t clock, const std::vector<std::int64_t>& counts) {
    auto standing = standing_.lock();
    for (std::size_t other = 0; other < counts.size(); ++other) {
      EXPECT_LE(counts[other], standing->begun[other]) << "an update of worker " << other << " came twice";
      if (standing->gone[other]) continue;
      EXPECT_LE(clock - counts[other], trial_.staleness)
          << "worker " << w << " begins clock " << clock << " without updates of worker " << other;
    }
    const std::int64_t lead = clock - counts[static_cast<std::size_t>(trial_.slowest)];
    std::int64_t& seen = standing->lead[static_cast<std::size_t>(w)];
    seen = std::max(seen, lead);
  }

  // All others can come so far: each of their waits ends without the slowest.
  void stand() {
    const auto all_lead = [this](const Standing& standing) {
      for (int w = 0; w < spec_.workers; ++w) {
        if (w != trial_.slowest && standing.lead[static_cast<std::size_t>(w)] < trial_.staleness)
          return false;
      }
      return true;
    };
    bool held = false;
    standing_.lock_when(all_lead, std::chrono::seconds(50), &held);
    ASSERT_TRUE(held) << "the others wait before the bound";
  }

  void go_away(int w) {
    standing_.lock()->gone[static_cast<std::size_t>(w)] = true;
    if (trial_.fate == Fate::kLeaves) {
      EXPECT_TRUE(world_.client(w).leave().ok());
    } else {
      world_.drop_client(w);
    }
  }

  void commit(int w) {
    const auto own = static_cast<std::size_t>(w), workers = static_cast<std::size_t>(spec_.workers);
    const std::span<float> gradient = world_.gradient(w);
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] = i % workers == own ? -1.0f : 0.0f;
    ASSERT_TRUE(world_.client(w).push(0, gradient.size()).ok());
    WorkerRows rows;
    rows.ids = {{static_cast<RowId>(w)}};
    ASSERT_TRUE(rows.push(world_, spec_.tables, w, [](int, RowId, std::size_t) { return -1.0f; }).ok());
    ++standing_.lock()->begun[own];
    ASSERT_TRUE(world_.client(w).commit({.loss_sum = 1, .samples = 1}).ok());
  }

  ServersWorld& world_;
  const WorldSpec& spec_;
  const Trial& trial_;
  Guarded<Standing> standing_;
};

// With random delays, and a slowest worker that goes on, leaves or dies while all others wait for it: nobody
// leads by more than s, reads lack nothing older, the bound is reached, and nobody waits for ever.
TEST_P(ServersStaleness, LeadsAndReadsKeepTheBound) {
  for (std::uint64_t seed = 1; seed <= 24; ++seed) {
    SCOPED_TRACE(str_cat("seed ", seed));
    WorldSpec spec = this->spec();
    const Trial trial = make_trial(spec, seed);
    ServersWorld world(spec, 0);
    StaleWorkers workers(world, spec, trial);
    world.each_worker([&](int w) { workers.train(w); });
    if (HasFailure()) return;
    if (trial.fate == Fate::kLeaves) world.drop_client(trial.slowest);  // it has said so already
    world.end_well();
  }
}

}  // namespace
}  // namespace paceline::pserver

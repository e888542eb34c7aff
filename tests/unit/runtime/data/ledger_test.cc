#include "runtime/data/ledger.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

#include "base/rng.h"
#include "base/text.h"

namespace paceline::data {
namespace {

std::vector<double> random_shares(Rng& rng, int members) {
  std::vector<double> shares(static_cast<std::size_t>(members));
  for (double& share : shares) share = 0.05 + rng.uniform();
  const double sum = std::accumulate(shares.begin(), shares.end(), 0.0);
  for (double& share : shares) share /= sum;
  return shares;
}

std::vector<std::int64_t> global_batch(const Ledger& ledger, std::int64_t step,
                                       const std::vector<double>& shares) {
  std::vector<std::int64_t> batch, part;
  for (std::size_t rank = 0; rank < shares.size(); ++rank) {
    ledger.samples_of(step, static_cast<int>(rank), shares, part);
    EXPECT_EQ(static_cast<std::int64_t>(part.size()),
              cut_batch(ledger.config().global_batch_size, shares)[rank]);
    batch.insert(batch.end(), part.begin(), part.end());
  }
  return batch;
}

class LedgerSizes : public ::testing::TestWithParam<std::int64_t> {};

TEST_P(LedgerSizes, EveryEpochIsAPermutation) {
  const std::int64_t size = GetParam();
  const Ledger ledger({.seed = 7, .samples = size, .global_batch_size = 1});
  for (const std::int64_t epoch : {std::int64_t{0}, std::int64_t{1}, std::int64_t{1000003}}) {
    std::vector<bool> seen(static_cast<std::size_t>(size));
    for (std::int64_t i = 0; i < size; ++i) {
      const std::int64_t sample = ledger.sample_at(epoch * size + i);
      ASSERT_TRUE(sample >= 0 && sample < size) << "epoch " << epoch << " index " << i;
      ASSERT_FALSE(seen[static_cast<std::size_t>(sample)])
          << "sample " << sample << " twice in epoch " << epoch;
      seen[static_cast<std::size_t>(sample)] = true;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, LedgerSizes,
                         ::testing::Values(1, 2, 3, 4, 5, 7, 16, 17, 64, 97, 1009, 1797, 4097, 60000));

// benchmarks/sample_order.py says the same, so that a peer trains on the same samples; its test has these
// numbers.
TEST(LedgerTest, PeersKnowTheOrder) {
  struct Case {
    std::uint64_t seed;
    std::int64_t samples;
    std::vector<std::int64_t> expected;
  };
  const Case cases[] = {{1, 7, {0, 5, 2, 6, 3, 0}},
                        {7, 97, {17, 67, 40, 80, 32, 12}},
                        {12345678901234567890U, 60000, {44403, 28047, 8414, 33922, 48907, 3330}}};
  for (const auto& [seed, samples, expected] : cases) {
    const Ledger ledger({.seed = seed, .samples = samples, .global_batch_size = 1});
    std::vector<std::int64_t> found;
    for (const std::int64_t position :
         {std::int64_t{0}, std::int64_t{1}, std::int64_t{2}, samples - 1, samples, 5 * samples + 3}) {
      found.push_back(ledger.sample_at(position));
    }
    EXPECT_EQ(found, expected) << "seed " << seed;
  }
}

// The property that everything else rests on: members come and go between steps, with any shares, and still
// each sample of every epoch is taken exactly once.
TEST(LedgerTest, EverySampleOnceWhileTheWorldChanges) {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE(str_cat("seed ", seed));
    Rng rng(seed, 1);
    const auto samples = static_cast<std::int64_t>(1 + rng.below(300));
    const auto batch = static_cast<std::int64_t>(1 + rng.below(70));
    const Ledger ledger({.seed = seed, .samples = samples, .global_batch_size = batch});
    std::vector<std::int64_t> taken;
    const std::int64_t epochs = 3;
    const std::int64_t steps = ledger.steps_for_epochs(static_cast<double>(epochs));
    for (std::int64_t step = 0; step < steps; ++step) {
      const auto shares = random_shares(rng, static_cast<int>(1 + rng.below(16)));
      const auto part = global_batch(ledger, step, shares);
      ASSERT_EQ(static_cast<std::int64_t>(part.size()), batch);
      taken.insert(taken.end(), part.begin(), part.end());
    }
    ASSERT_GE(static_cast<std::int64_t>(taken.size()), epochs * samples);
    for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
      const auto begin = taken.begin() + epoch * samples;
      ASSERT_EQ(std::set<std::int64_t>(begin, begin + samples).size(), static_cast<std::size_t>(samples));
    }
  }
}

// A job that resumes with two members where one has trained must not skip by the new batch of a member, as in
// https://github.com/huggingface/transformers/issues/40245.
TEST(LedgerTest, OneMemberBecomesTwoInTheMiddleOfAnEpoch) {
  const Ledger ledger({.seed = 1, .samples = 100, .global_batch_size = 10});
  std::vector<std::int64_t> taken;
  for (std::int64_t step = 0; step < 10; ++step) {
    const std::vector<double> shares(step < 5 ? 1 : 2, step < 5 ? 1.0 : 0.5);
    const auto part = global_batch(ledger, step, shares);
    taken.insert(taken.end(), part.begin(), part.end());
  }
  std::ranges::sort(taken);
  std::vector<std::int64_t> all(100);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_EQ(taken, all);
}

TEST(LedgerTest, TheGlobalBatchDoesNotDependOnTheMembers) {
  const Ledger ledger({.seed = 3, .samples = 1797, .global_batch_size = 64});
  Rng rng(5, 1);
  for (std::int64_t step = 0; step < 60; ++step) {
    const auto alone = global_batch(ledger, step, {1.0});
    for (const int members : {2, 3, 4, 7, 16, 100}) {
      EXPECT_EQ(global_batch(ledger, step, random_shares(rng, members)), alone) << step << " " << members;
      EXPECT_EQ(
          global_batch(ledger, step, std::vector<double>(static_cast<std::size_t>(members), 1.0 / members)),
          alone);
    }
  }
}

TEST(LedgerTest, HugePositions) {
  const std::int64_t samples = 60000, batch = 256;
  const Ledger ledger({.seed = 1, .samples = samples, .global_batch_size = batch});
  const std::int64_t step = (std::int64_t{1} << 62) / batch;
  const auto part = global_batch(ledger, step, {0.5, 0.5});
  EXPECT_EQ(part.size(), 256u);
  EXPECT_EQ(std::set<std::int64_t>(part.begin(), part.end()).size(), 256u);
  const Ledger large({.seed = 1, .samples = std::int64_t{1} << 62, .global_batch_size = 1});
  EXPECT_LT(large.sample_at((std::int64_t{1} << 62) + 12345), std::int64_t{1} << 62);
  EXPECT_DEATH(ledger.position_of(std::int64_t{1} << 60), "fits 63 bits");
}

TEST(LedgerTest, SeedsAndEpochsGiveOtherOrders) {
  const auto order = [](std::uint64_t seed, std::int64_t epoch) {
    const Ledger ledger({.seed = seed, .samples = 1000, .global_batch_size = 1});
    std::vector<std::int64_t> samples;
    for (std::int64_t i = 0; i < 1000; ++i) samples.push_back(ledger.sample_at(epoch * 1000 + i));
    return samples;
  };
  EXPECT_EQ(order(1, 0), order(1, 0));
  for (const auto& other : {order(2, 0), order(1, 1)}) {
    const auto base = order(1, 0);
    int same = 0;
    for (std::size_t i = 0; i < base.size(); ++i) same += base[i] == other[i] ? 1 : 0;
    EXPECT_LT(same, 10) << "two orders agree in one place on average";
  }
}

// Over many epochs, each sample comes to each tenth of the epoch equally often, and neighbours are strangers.
TEST(LedgerTest, PositionsAreSpreadEvenly) {
  const std::int64_t samples = 1000, epochs = 400;
  const Ledger ledger({.seed = 11, .samples = samples, .global_batch_size = 1});
  std::vector<int> counts(100);  // tenth of the epoch by tenth of the data
  double neighbours = 0;
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    std::int64_t before = -1;
    for (std::int64_t i = 0; i < samples; ++i) {
      const std::int64_t sample = ledger.sample_at(epoch * samples + i);
      ++counts[static_cast<std::size_t>(i / 100 * 10 + sample / 100)];
      neighbours += std::abs(sample - before) == 1 ? 1 : 0;
      before = sample;
    }
  }
  double chi = 0;
  for (const int count : counts) chi += std::pow(count - 4000.0, 2) / 4000.0;
  EXPECT_LT(chi, 130) << "81 degrees of freedom: 99.9 % are below 127";
  EXPECT_NEAR(neighbours / static_cast<double>(epochs), 2.0, 0.5);
}

TEST(LedgerTest, CutsAddUpAndFollowTheShares) {
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Rng rng(seed, 2);
    const auto shares = random_shares(rng, static_cast<int>(1 + rng.below(32)));
    const auto batch = static_cast<std::int64_t>(1 + rng.below(5000));
    const auto counts = cut_batch(batch, shares);
    EXPECT_EQ(std::accumulate(counts.begin(), counts.end(), std::int64_t{0}), batch) << seed;
    for (std::size_t r = 0; r < counts.size(); ++r) {
      EXPECT_GE(counts[r], 0);
      EXPECT_NEAR(static_cast<double>(counts[r]), shares[r] * static_cast<double>(batch), 1.001) << seed;
    }
  }
  EXPECT_EQ(cut_batch(256, {0.25, 0.25, 0.25, 0.25}), (std::vector<std::int64_t>{64, 64, 64, 64}));
  EXPECT_EQ(cut_batch(2, {0.25, 0.25, 0.25, 0.25}), (std::vector<std::int64_t>{1, 0, 1, 0}));
  EXPECT_EQ(cut_batch(10, {0.0, 1.0}), (std::vector<std::int64_t>{0, 10}));
}

TEST(LedgerTest, UnitsArePartsOfSteps) {
  const Ledger ledger({.seed = 3, .samples = 1000, .global_batch_size = 50});
  for (const int parts : {1, 3, 4, 7}) {
    const std::vector<double> shares = equal_shares(parts);
    std::vector<std::int64_t> part, unit;
    for (std::int64_t u = 0; u < 6 * parts; ++u) {
      ledger.samples_of_unit(u, shares, unit);
      ledger.samples_of(u / parts, static_cast<int>(u % parts), shares, part);
      EXPECT_EQ(unit, part) << "unit " << u << " of " << parts << " parts";
    }
  }
}

TEST(LedgerTest, StepsForEpochs) {
  const Ledger ledger({.samples = 60000, .global_batch_size = 100});
  EXPECT_EQ(ledger.steps_for_epochs(0), 0);
  EXPECT_EQ(ledger.steps_for_epochs(1), 600);
  EXPECT_EQ(ledger.steps_for_epochs(0.1), 60);
  EXPECT_EQ(ledger.steps_for_epochs(1.0 / 60000), 1);
  EXPECT_EQ(ledger.steps_for_epochs(1e-30), 1);
  EXPECT_EQ(Ledger({.samples = 1797, .global_batch_size = 64}).steps_for_epochs(1), 29);
}

}  // namespace
}  // namespace paceline::data

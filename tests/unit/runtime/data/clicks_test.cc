#include "runtime/data/clicks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

#include "base/rng.h"
#include "runtime/data/ledger.h"
#include "runtime/data/open.h"
#include "tests/unit/runtime/data/opened.h"

namespace paceline::data {
namespace {

using ::testing::HasSubstr;

v1::ClicksSpec clicks_spec(std::vector<std::int64_t> vocabularies, std::int64_t samples = 200'000) {
  v1::ClicksSpec spec;
  spec.set_samples(samples);
  for (const auto size : vocabularies) spec.add_vocabularies(size);
  spec.set_exponent(1.1);
  spec.set_click_rate(0.2);
  spec.set_signal(1.5);
  spec.set_interaction(0.8);
  spec.set_seed(7);
  return spec;
}

std::shared_ptr<const ClickLog> log_of(const v1::ClicksSpec& spec) {
  auto log = ClickLog::make(spec);
  EXPECT_TRUE(log.ok()) << log.status();
  return *log;
}

std::vector<std::int64_t> numbers(std::int64_t begin, std::int64_t end) {
  std::vector<std::int64_t> n(static_cast<std::size_t>(end - begin));
  std::iota(n.begin(), n.end(), begin);
  return n;
}

TEST(ClickLog, Shape) {
  const auto log = log_of(clicks_spec({100, 10'000'000, 7}, 1000));
  EXPECT_EQ(log->size(), 1000);
  EXPECT_EQ(log->shape().kind, InputKind::kTokens);
  EXPECT_EQ(log->shape().dims, std::vector<std::int64_t>{3});
  EXPECT_EQ(log->shape().labels, 1);
  EXPECT_EQ(log->shape().classes, 2);
}

// The same sample by whoever makes it, in whatever order and company: here the members of two worlds.
TEST(ClickLog, ASampleIsTheSameOnAnyWorker) {
  const v1::ClicksSpec spec = clicks_spec({1000, 10'000'000, 50, 300}, 960);
  const auto all = fetch(*log_of(spec), numbers(0, 960));
  const Ledger ledger({3, 960, 96});
  for (const int world : {1, 3, 4}) {
    const std::vector<double> shares = equal_shares(world);
    for (int rank = 0; rank < world; ++rank) {
      const auto log = log_of(spec);  // each member opens its own
      std::vector<std::int64_t> indices;
      for (std::int64_t step = 0; step < 10; ++step) {
        ledger.samples_of(step, rank, shares, indices);
        const Rows got = fetch(*log, indices);
        for (std::size_t i = 0; i < indices.size(); ++i) {
          const auto n = static_cast<std::size_t>(indices[i]);
          ASSERT_EQ(got.labels[i], all.labels[n]);
          for (std::size_t f = 0; f < 4; ++f) ASSERT_EQ(got.tokens[i * 4 + f], all.tokens[n * 4 + f]);
        }
      }
    }
  }
}

TEST(ClickLog, AnotherSeedIsAnotherLog) {
  v1::ClicksSpec spec = clicks_spec({1000, 1000}, 100);
  const Rows one = fetch(*log_of(spec), numbers(0, 100));
  spec.set_seed(8);
  EXPECT_NE(fetch(*log_of(spec), numbers(0, 100)).tokens, one.tokens);
}

// Labels are drawn from p: their mean is the mean of p, and both are the rate that was asked for.
TEST(ClickLog, ClickRate) {
  for (const double rate : {0.02, 0.2, 0.7}) {
    v1::ClicksSpec spec = clicks_spec({1000, 100'000, 20, 3000}, 100'000);
    spec.set_click_rate(rate);
    const auto log = log_of(spec);
    const Rows rows = fetch(*log, numbers(0, 100'000));
    double clicks = 0, expected = 0, variance = 0;
    for (std::int64_t i = 0; i < 100'000; ++i) {
      const double p = log->probability(i);
      clicks += rows.labels[static_cast<std::size_t>(i)];
      expected += p;
      variance += p * (1 - p);
    }
    EXPECT_LE(std::abs(clicks - expected), 5 * std::sqrt(variance)) << rate;
    EXPECT_NEAR(expected / 100'000, rate, 0.003 + 0.02 * rate) << rate;
  }
}

TEST(ClickLog, ValuesAreZipfs) {
  constexpr std::int64_t kSamples = 100'000;
  const auto log = log_of(clicks_spec({10'000'000, 50}, kSamples));
  const Rows rows = fetch(*log, numbers(0, kSamples));
  for (const std::size_t field : {0U, 1U}) {
    const Zipf zipf(field == 0 ? 10'000'000 : 50, 1.1);
    std::vector<double> counts(10);
    for (std::int64_t i = 0; i < kSamples; ++i) {
      const std::int32_t value = rows.tokens[static_cast<std::size_t>(i) * 2 + field];
      if (value < 10) ++counts[static_cast<std::size_t>(value)];
    }
    for (std::size_t k = 0; k < 10; ++k) {
      const double chance = zipf.chance_of_first() * std::pow(static_cast<double>(k + 1), -1.1);
      EXPECT_LE(std::abs(counts[k] - kSamples * chance), 5 * std::sqrt(kSamples * chance))
          << field << " " << k;
    }
  }
}

// Those who rank the samples by p reach the AUC that is said to be the best: the labels' own, within what
// drawing so many labels leaves to chance.
TEST(ClickLog, TheOraclesAucIsTheBayesOptimalOne) {
  constexpr std::int64_t kSamples = 100'000;
  const auto log = log_of(clicks_spec({1000, 1'000'000, 20, 3000, 500}, kSamples));
  const Rows rows = fetch(*log, numbers(0, kSamples));
  std::vector<float> scores;
  std::vector<double> p;
  for (std::int64_t i = 0; i < kSamples; ++i) {
    p.push_back(log->probability(i));
    scores.push_back(static_cast<float>(p.back()));
  }
  Auc oracle;
  oracle.add(scores, rows.labels);
  const ExpectedAuc best = log->bayes_auc(1 << 17);
  EXPECT_GT(best.value, 0.6);
  EXPECT_LT(best.value, 0.95);
  EXPECT_GT(best.standard_error, 0);
  EXPECT_LT(best.standard_error, 0.0015);
  EXPECT_EQ(best.value, log->bayes_auc(1 << 17).value);
  const double of_these = expected_auc(p).value;
  // Hanley and McNeil's bound of the labels' part: below 1 / (2 sqrt(min(clicks, others))).
  EXPECT_NEAR(*oracle.value(), of_these, 5 * 0.5 / std::sqrt(0.2 * kSamples) / 2);
  EXPECT_NEAR(of_these, best.value, 5 * std::sqrt(2) * best.standard_error);

  // And no other ranking reaches it: noise on p loses.
  Rng rng(5, 5);
  for (float& score : scores) score += 0.2F * rng.normal();
  Auc noisy;
  noisy.add(scores, rows.labels);
  EXPECT_LT(*noisy.value(), *oracle.value() - 0.01);
}

TEST(ClickLog, WithoutSignalNothingIsToBeLearned) {
  v1::ClicksSpec spec = clicks_spec({1000, 1000});
  spec.set_signal(0);
  spec.set_interaction(0);
  EXPECT_NEAR(log_of(spec)->bayes_auc(1000).value, 0.5, 1e-9);
}

TEST(ClickLog, InteractionNeedsMoreThanOneField) {
  v1::ClicksSpec spec = clicks_spec({1000});
  spec.set_signal(0);
  EXPECT_NEAR(log_of(spec)->bayes_auc(1000).value, 0.5, 1e-9);
}

TEST(ClickLog, RefusesWithTheField) {
  const std::pair<std::string, std::function<void(v1::ClicksSpec&)>> cases[] = {
      {"data.clicks.samples 0", [](auto& s) { s.set_samples(0); }},
      {"data.clicks.vocabularies has 0 fields", [](auto& s) { s.clear_vocabularies(); }},
      {"data.clicks.vocabularies holds 0", [](auto& s) { s.set_vocabularies(0, 0); }},
      {"data.clicks.vocabularies holds 2147483649", [](auto& s) { s.set_vocabularies(0, (1LL << 31) + 1); }},
      {"data.clicks.exponent -1", [](auto& s) { s.set_exponent(-1); }},
      {"data.clicks.exponent nan", [](auto& s) { s.set_exponent(NAN); }},
      {"data.clicks.clickRate 1", [](auto& s) { s.set_click_rate(1); }},
      {"data.clicks.clickRate 0", [](auto& s) { s.set_click_rate(0); }},
      {"data.clicks.signal -2", [](auto& s) { s.set_signal(-2); }},
      {"data.clicks.interaction inf", [](auto& s) { s.set_interaction(INFINITY); }},
  };
  for (const auto& [message, change] : cases) {
    v1::ClicksSpec spec = clicks_spec({10, 10});
    change(spec);
    const auto log = ClickLog::make(spec);
    EXPECT_EQ(log.status().code(), absl::StatusCode::kInvalidArgument) << message;
    EXPECT_THAT(std::string(log.status().message()), HasSubstr(message));
  }
}

TEST(ClickLog, OpensAsAFormatAndIsSplit) {
  v1::DataSpec spec;
  spec.set_format(v1::DataSpec::CLICKS);
  *spec.mutable_clicks() = clicks_spec({100, 100}, 1000);
  spec.set_test_fraction(0.1);
  const auto sets = open_datasets(spec, {.seed = 3});
  ASSERT_TRUE(sets.ok()) << sets.status();
  EXPECT_EQ(sets->train->size(), 900);
  EXPECT_EQ(sets->test->size(), 100);
  EXPECT_EQ(fetch(*sets->test, numbers(0, 100)).tokens.size(), 200);
}

}  // namespace
}  // namespace paceline::data

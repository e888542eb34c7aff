#include "controller/dashboard/pyramid.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

#include "base/rng.h"

namespace paceline::dashboard {
namespace {

constexpr std::size_t kColumns = 16;

// All that was told, and the mean over any column of it.
struct Oracle {
  std::map<Step, double> told;
  double mean(std::size_t level, Step column) const {
    double sum = 0;
    int count = 0;
    for (auto each = told.lower_bound(column << level); each != told.end() && each->first >> level == column;
         ++each) {
      sum += each->second;
      ++count;
    }
    return count == 0 ? std::nan("") : sum / count;
  }
};

void expect_same(const Pyramid<double>& pyramid, const Oracle& oracle, Step from, Step to, std::size_t most) {
  const std::size_t level = pyramid.level_of(from, to, most);
  ASSERT_LE((to >> level) - (from >> level), static_cast<Step>(most));
  for (Step column = from >> level; column <= to >> level; ++column) {
    const double mean = pyramid.mean(level, column, 0), expected = oracle.mean(level, column);
    ASSERT_EQ(std::isnan(mean), std::isnan(expected)) << "level " << level << " column " << column;
    if (!std::isnan(expected)) {
      ASSERT_NEAR(mean, expected, 1e-9) << "level " << level << " column " << column;
    }
  }
}

TEST(PyramidTest, NotANumberBlanksNoCoarseColumn) {
  const double nan = std::nan("");
  Pyramid<double> pyramid(2, 4);
  for (Step step = 0; step < 64; ++step) {
    const double values[] = {step % 4 == 1 ? nan : 5.0, nan};
    pyramid.add(step, values);
  }
  for (std::size_t level = 0; level < 8; ++level) {
    const Step last = Step{63} >> level;
    EXPECT_EQ(pyramid.mean(level, last, 0), 5) << level;
    EXPECT_TRUE(std::isnan(pyramid.mean(level, last, 1))) << level;
  }
  EXPECT_TRUE(std::isnan(pyramid.mean(0, 61, 0))) << "that step told nothing";
}

TEST(PyramidTest, MeansAreThoseOfAllSteps) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, 0);
    Pyramid<double> pyramid(1, kColumns);
    Oracle oracle;
    Step step = static_cast<Step>(rng.below(3));
    for (int i = 0; i < 500; ++i) {
      const double value = static_cast<double>(rng.below(1000));
      pyramid.add(step, std::span(&value, 1));
      oracle.told[step] = value;
      if (i % 50 == 49) {
        expect_same(pyramid, oracle, 0, step, 1 + rng.below(kColumns));
        expect_same(pyramid, oracle, std::max<Step>(0, step - static_cast<Step>(kColumns) + 1), step,
                    kColumns);
      }
      step += 1 + static_cast<Step>(rng.below(i % 100 == 0 ? 5000 : 3));
    }
  }
}

TEST(PyramidTest, NewStepsAreKeptOneByOne) {
  Pyramid<double> pyramid(1, kColumns);
  for (Step step = 0; step < 100'000; ++step) {
    const double value = static_cast<double>(step);
    pyramid.add(step, std::span(&value, 1));
  }
  EXPECT_EQ(pyramid.level_of(100'000 - 16, 99'999, 16), 0U);
  EXPECT_EQ(pyramid.mean(0, 99'990, 0), 99'990);
  EXPECT_TRUE(std::isnan(pyramid.mean(0, 5, 0))) << "old ones are kept as means";
  const std::size_t level = pyramid.level_of(0, 99'999, 16);
  EXPECT_EQ(level, 13U);
  EXPECT_NEAR(pyramid.mean(level, 0, 0), 4095.5, 1e-6);
}

TEST(PyramidTest, SpansLeaveNoColumnOut) {
  for (Step length = 1; length < 3000; length = length * 2 + 1) {
    SCOPED_TRACE(length);
    constexpr Step kSpans = 40;
    Pyramid<double> pyramid(1, kColumns);
    for (Step span = 0; span < kSpans; ++span) {
      const double value[] = {static_cast<double>(span)};
      pyramid.add_span(span * length, (span + 1) * length - 1, value, kSpans * length - 1);
    }
    const Step last = kSpans * length - 1;
    for (const Step from : {Step{0}, last / 2, last - last / 8, std::max<Step>(0, last - 8)}) {
      const std::size_t level = pyramid.level_of(from, last, kColumns);
      for (Step column = from >> level; column <= last >> level; ++column) {
        const double mean = pyramid.mean(level, column, 0);
        const Step end = std::min(last, ((column + 1) << level) - 1);
        EXPECT_GE(mean, static_cast<double>((column << level) / length)) << "level " << level;
        EXPECT_LE(mean, static_cast<double>(end / length)) << "level " << level;
      }
    }
  }
}

TEST(PyramidTest, CutStepsAreForgotten) {
  Pyramid<double> pyramid(1, kColumns);
  Oracle oracle;
  const auto add = [&](Step step, double value) {
    pyramid.add(step, std::span(&value, 1));
    oracle.told[step] = value;
  };
  for (Step step = 0; step < 64; ++step) add(step, 1);
  pyramid.cut(15);  // a border of all columns that matter here
  oracle.told.erase(oracle.told.upper_bound(15), oracle.told.end());
  expect_same(pyramid, oracle, 0, 63, 4);
  for (Step step = 16; step < 40; ++step) add(step, 2);
  expect_same(pyramid, oracle, 0, 63, 4);
  expect_same(pyramid, oracle, 24, 39, kColumns);
}

TEST(PyramidTest, ColumnsAcrossABorderForgetTheStepsBehindIt) {
  Pyramid<double> pyramid(1, kColumns);
  Oracle oracle;
  const auto add = [&](Step step, double value) {
    pyramid.add(step, std::span(&value, 1));
    oracle.told[step] = value;
  };
  for (Step step = 0; step <= 40; ++step) add(step, 1);
  for (const double value : {2.0, 3.0}) {
    pyramid.cut(34);
    oracle.told.erase(oracle.told.upper_bound(34), oracle.told.end());
    for (Step step = 35; step < 38; ++step) add(step, value);
    expect_same(pyramid, oracle, 0, 63, 4);
    expect_same(pyramid, oracle, 24, 39, kColumns);
  }
}

TEST(PyramidTest, InfiniteNumbersStaySo) {
  Pyramid<float> pyramid(2, kColumns);
  const float values[][2] = {{1, 1}, {std::numeric_limits<float>::infinity(), 2}};
  pyramid.add(0, values[0]);
  pyramid.add(1, values[1]);
  EXPECT_FALSE(std::isfinite(pyramid.mean(1, 0, 0)));
  EXPECT_EQ(pyramid.mean(1, 0, 1), 1.5F);
}

TEST(PyramidTest, OddStepsDoNoHarm) {
  Pyramid<double> pyramid(1, kColumns);
  const double value = 3;
  pyramid.add(-5, std::span(&value, 1));
  pyramid.add(std::numeric_limits<Step>::max() >> 1, std::span(&value, 1));
  pyramid.add(7, std::span(&value, 1));
  const Step newest = std::numeric_limits<Step>::max() >> 1;
  const std::size_t level = pyramid.level_of(0, newest, 4);
  EXPECT_EQ(pyramid.mean(level, newest >> level, 0), 3);
}

}  // namespace
}  // namespace paceline::dashboard

#include "runtime/generate/sampler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/rng.h"

namespace paceline::generate {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

// What each chance 0, 1/n, ... gives.
std::vector<std::int32_t> chosen(const std::vector<float>& scores, const Sampling& sampling, int n = 1000) {
  std::vector<std::int32_t> tokens;
  for (int i = 0; i < n; ++i)
    tokens.push_back(next_token(scores, sampling, static_cast<double>(i) / n).value_or(-1));
  return tokens;
}

std::map<std::int32_t, int> counts(const std::vector<std::int32_t>& tokens) {
  std::map<std::int32_t, int> counted;
  for (const std::int32_t token : tokens) ++counted[token];
  return counted;
}

TEST(Sampler, TemperatureZeroTakesTheLikeliestAndOfEqualOnesTheFirst) {
  struct Row {
    std::vector<float> scores;
    std::int32_t token;
  };
  const Row rows[] = {{{3}, 0}, {{1, 2, 0}, 1}, {{-5, -2, -2}, 1}, {{-kInfinity, -9}, 1}, {{0, 0}, 0}};
  for (const Row& row : rows) {
    for (const double chance : {0.0, 0.5, 0.999999})
      EXPECT_EQ(next_token(row.scores, {.temperature = 0}, chance).value(), row.token);
  }
}

// Likelihoods 1 : 2 : 4 : 1.
TEST(Sampler, ChancesAreOwnedAsTheScoresSay) {
  const std::vector<float> scores = {0, std::log(2.0F), std::log(4.0F), 0};
  const auto tokens = chosen(scores, {}, 800);
  EXPECT_TRUE(std::is_sorted(tokens.begin(), tokens.end()));
  const auto counted = counts(tokens);
  EXPECT_NEAR(counted.at(0), 100, 1);
  EXPECT_NEAR(counted.at(1), 200, 1);
  EXPECT_NEAR(counted.at(2), 400, 1);
  EXPECT_NEAR(counted.at(3), 100, 1);
}

TEST(Sampler, TemperatureSharpensAndFlattens) {
  const std::vector<float> scores = {0, std::log(2.0F), std::log(4.0F), 0};
  EXPECT_NEAR(counts(chosen(scores, {.temperature = 0.5})).at(2), 1000.0 * 16 / 22, 1);
  EXPECT_NEAR(counts(chosen(scores, {.temperature = 2})).at(2), 1000.0 * 2 / (4 + std::sqrt(2)), 1);
  EXPECT_EQ(counts(chosen(scores, {.temperature = 1e-300})).at(2), 1000);
  EXPECT_NEAR(counts(chosen(scores, {.temperature = 1e300})).at(2), 250, 1);
}

TEST(Sampler, TopKAndTopPLeaveTheLikeliest) {
  const std::vector<float> scores = {0, std::log(2.0F), std::log(4.0F), 0};
  const auto seen = [&](const Sampling& sampling) {
    std::vector<std::int32_t> tokens;
    for (const auto& [token, count] : counts(chosen(scores, sampling))) tokens.push_back(token);
    return tokens;
  };
  EXPECT_THAT(seen({.top_k = 1}), ElementsAre(2));
  EXPECT_THAT(seen({.top_k = 2}), ElementsAre(1, 2));
  EXPECT_THAT(seen({.top_k = 3}), ElementsAre(0, 1, 2));  // of equal ones the first
  EXPECT_THAT(seen({.top_k = 4}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(seen({.top_k = 99}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(seen({.top_p = 0.01}), ElementsAre(2));
  EXPECT_THAT(seen({.top_p = 0.6}), ElementsAre(1, 2));
  EXPECT_THAT(seen({.top_p = 0.8}), ElementsAre(0, 1, 2));
  EXPECT_THAT(seen({.top_p = 1}), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(seen({.top_k = 2, .top_p = 0.6}), ElementsAre(2));  // of what top-k leaves
  EXPECT_NEAR(counts(chosen(scores, {.top_k = 2})).at(2), 667, 1);
}

TEST(Sampler, DrawsFollowTheProbabilities) {
  constexpr std::uint64_t kSeed = 20261124;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Rng rng(kSeed, 1);
  std::vector<float> scores(50);
  for (float& score : scores) score = 2 * rng.normal();
  double sum = 0;
  for (const float score : scores) sum += std::exp(static_cast<double>(score));
  constexpr int kDraws = 200'000;
  std::vector<int> drawn(scores.size());
  for (int i = 0; i < kDraws; ++i)
    ++drawn[static_cast<std::size_t>(next_token(scores, {}, rng.uniform()).value())];
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const double expected = std::exp(static_cast<double>(scores[i])) / sum * kDraws;
    EXPECT_NEAR(drawn[i], expected, 5 * std::sqrt(expected) + 1) << "token " << i;
  }
}

TEST(Sampler, ATokenWithoutProbabilityIsNeverTaken) {
  const std::vector<float> scores = {-kInfinity, 0, -kInfinity, 0, -kInfinity};
  const auto counted = counts(chosen(scores, {}));
  EXPECT_EQ(counted.size(), 2U);
  EXPECT_EQ(counted.at(1), 500);
  EXPECT_EQ(counted.at(3), 500);
}

TEST(Sampler, ScoresThatAreNoNumbersAreAnError) {
  for (const std::vector<float>& scores :
       {std::vector<float>{0, NAN}, {NAN, 0}, {kInfinity, 0}, {-kInfinity, -kInfinity}}) {
    for (const double temperature : {0.0, 1.0}) {
      const auto token = next_token(scores, {.temperature = temperature}, 0.5);
      EXPECT_EQ(token.status().code(), absl::StatusCode::kFailedPrecondition);
      EXPECT_THAT(std::string(token.status().message()), HasSubstr("diverged"));
    }
  }
}

TEST(Sampler, ValueOutOfRangeIsNamed) {
  EXPECT_TRUE(check({}).ok());
  EXPECT_TRUE(check({.temperature = 0, .top_k = 5, .top_p = 0.1}).ok());
  const auto words = [](const Sampling& sampling) {
    EXPECT_EQ(check(sampling).code(), absl::StatusCode::kInvalidArgument);
    return std::string(check(sampling).message());
  };
  EXPECT_THAT(words({.temperature = -0.1}), HasSubstr("temperature -0.1"));
  EXPECT_THAT(words({.temperature = NAN}), HasSubstr("temperature"));
  EXPECT_THAT(words({.temperature = HUGE_VAL}), HasSubstr("temperature"));
  EXPECT_THAT(words({.top_k = -1}), HasSubstr("top-k -1"));
  EXPECT_THAT(words({.top_p = 0}), HasSubstr("top-p 0"));
  EXPECT_THAT(words({.top_p = 1.5}), HasSubstr("top-p 1.5"));
  EXPECT_THAT(words({.top_p = NAN}), HasSubstr("top-p"));
}

}  // namespace
}  // namespace paceline::generate

// The scores of what follows, on a device, against the oracle's plain loops over the whole block.

#include "runtime/generate/scorer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "runtime/generate/generate.h"
#include "tests/unit/runtime/generate/tiny_gpt.h"
#include "tests/unit/runtime/tensor/trial.h"

namespace paceline::generate {
namespace {

using ::testing::HasSubstr;

std::unique_ptr<Scorer> scorer_of(const TinyGpt& gpt, tensor::Precision precision = tensor::Precision::kF32) {
  auto scorer = Scorer::create(gpt.spec, precision, tensor::make_test_device(), gpt.weights);
  EXPECT_TRUE(scorer.ok()) << scorer.status();
  return *std::move(scorer);
}

void expect_near(std::span<const float> scores, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(scores.size(), expected.size());
  double most = 0;
  for (const double score : expected) most = std::max(most, std::abs(score));
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_LE(std::abs(static_cast<double>(scores[i]) - expected[i]), tolerance * most) << "token " << i;
  }
}

TEST(Scorer, LengthsDoubleUpToTheBlock) {
  const TinyGpt gpt;
  const auto scorer = scorer_of(gpt);
  const auto lengths = [&](std::initializer_list<std::int64_t> tokens) {
    std::vector<std::int64_t> all;
    for (const std::int64_t count : tokens) all.push_back(scorer->length_for(count));
    return all;
  };
  EXPECT_EQ(lengths({1, 31, 32, 33, 64, 65, 80, 999}),
            (std::vector<std::int64_t>{32, 32, 32, 64, 64, 80, 80, 80}));
  EXPECT_EQ(scorer_of(TinyGpt(6))->length_for(1), 6);
}

// Every length of pass at its ends, back to a shorter one, and more tokens than a block. fp32 keeps 24 bits;
// two blocks of sums of at most 32 products lose a few of them.
TEST(Scorer, ScoresAreThoseOfTheWholeBlock) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  const TinyGpt gpt;
  const auto scorer = scorer_of(gpt);
  for (const std::size_t count : {1, 5, 32, 33, 64, 65, 80, 81, 200, 7}) {
    SCOPED_TRACE(std::to_string(count) + " tokens");
    const auto tokens = some_tokens(count, gpt.spec.vocabulary_size(), count);
    const auto scores = scorer->begin(tokens);
    ASSERT_TRUE(scores.ok()) << scores.status();
    expect_near(*scores, gpt.scores_after(tokens), 1e-5);
  }
}

// bf16 keeps 8 bits: of operands of products on processors, of every result on a GPU.
TEST(Scorer, OfBf16AreNear) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  const TinyGpt gpt;
  const auto scorer = scorer_of(gpt, tensor::Precision::kBF16);
  for (const std::size_t count : {3, 40, 90}) {
    const auto tokens = some_tokens(count, gpt.spec.vocabulary_size(), count);
    const auto scores = scorer->begin(tokens);
    ASSERT_TRUE(scores.ok()) << scores.status();
    expect_near(*scores, gpt.scores_after(tokens), 0.05);
  }
}

double root_mean_square(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

// The scores of every position of a block, and of some behind it, where the window slides, are compared:
// those that come one token after the other behind prompts of several lengths, and those of passes over all
// before. A few positions hang on differences that nearly vanish, so rounding is judged by all positions
// together.
void expect_every_position(tensor::Precision precision, double apart, double off) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  const TinyGpt gpt(44);
  const auto tokens = some_tokens(48, gpt.spec.vocabulary_size(), 5);
  const auto first = [&](std::size_t count) { return std::span(tokens).first(count); };
  const auto append = [](std::vector<double>& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  std::vector<double> passes, expected;
  const auto whole = scorer_of(gpt, precision);
  for (std::size_t count = 1; count <= tokens.size(); ++count) {
    append(passes, whole->begin(first(count)).value());
    append(expected, gpt.scores_after({first(count).begin(), first(count).end()}));
  }
  const double size = root_mean_square(expected, std::vector<double>(expected.size()));
  for (const std::size_t prompt : {1, 8, 9, 20, 43, 44}) {
    SCOPED_TRACE("prompt of " + std::to_string(prompt) + " tokens");
    const auto scorer = scorer_of(gpt, precision);
    std::vector<double> scores(passes.begin(),
                               passes.begin() + static_cast<std::ptrdiff_t>((prompt - 1) * 13));
    append(scores, scorer->begin(first(prompt)).value());
    for (std::size_t i = prompt; i < tokens.size(); ++i) append(scores, scorer->next(tokens[i]).value());
    ASSERT_EQ(scores.size(), expected.size());
    EXPECT_LE(root_mean_square(scores, passes), apart * size);
    EXPECT_LE(root_mean_square(scores, expected), off * size);
  }
}

TEST(Scorer, EveryPositionsScoresAreThoseOfAPassOverAllBeforeIt) {
  expect_every_position(tensor::Precision::kF32, 1e-6, 1e-6);
}

TEST(Scorer, EveryPositionsScoresOfBf16AreNear) {
  expect_every_position(tensor::Precision::kBF16, 0.02, 0.05);
}

// By a prefill and by steps, after another request and after the same, and after one whose window slid.
TEST(Scorer, TheSameTokensGiveTheSameBitsWhateverWasAskedBefore) {
  const TinyGpt gpt(24);
  const auto tokens = some_tokens(30, 13, 6);
  const auto scores_of = [&](Scorer& scorer, std::size_t prompt, std::size_t count) {
    std::span<const float> scores = scorer.begin(std::span(tokens).first(prompt)).value();
    for (std::size_t i = prompt; i < count; ++i) scores = scorer.next(tokens[i]).value();
    return std::vector<float>(scores.begin(), scores.end());
  };
  for (const std::size_t prompt : {3, 10, 24, 26}) {
    SCOPED_TRACE("prompt of " + std::to_string(prompt) + " tokens");
    const auto expected = scores_of(*scorer_of(gpt), prompt, prompt);
    const auto later = scores_of(*scorer_of(gpt), prompt, prompt + 4);
    const auto scorer = scorer_of(gpt);
    for (const std::size_t before : {5, 11, 23, 25}) {
      scores_of(*scorer, before, before + 3);
      EXPECT_EQ(scores_of(*scorer, prompt, prompt), expected);
      EXPECT_EQ(scores_of(*scorer, prompt, prompt + 4), later);
      EXPECT_EQ(scores_of(*scorer, prompt, prompt + 4), later);
    }
  }
}

std::vector<std::int32_t> generated(Scorer& scorer, const Request& request) {
  std::vector<std::int32_t> tokens;
  const absl::Status status = generate(scorer, request, [&](std::int32_t token) {
    tokens.push_back(token);
    return true;
  });
  EXPECT_TRUE(status.ok()) << status;
  return tokens;
}

// Over the block's end, where the window slides: each token is the oracle's likeliest after all before it.
TEST(Generate, TakesTheLikeliestAfterAllBeforeIt) {
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  const TinyGpt gpt(40);
  const auto scorer = scorer_of(gpt);
  Request request{.prompt = some_tokens(20, 13, 3), .tokens = 75, .sampling = {.temperature = 0}};
  std::vector<std::int32_t> all = request.prompt;
  for (const std::int32_t token : generated(*scorer, request)) {
    const std::vector<double> scores = gpt.scores_after(all);
    const double most = *std::max_element(scores.begin(), scores.end());
    EXPECT_GE(scores[static_cast<std::size_t>(token)], most - 1e-4 * std::abs(most));
    all.push_back(token);
  }
  EXPECT_EQ(all.size(), 95U);
  EXPECT_GE(std::set<std::int32_t>(all.begin() + 20, all.end()).size(), 4U) << "or it says nothing";
}

TEST(Generate, TheSameSeedAndSampleGiveTheSame) {
  const TinyGpt gpt(24);
  const auto scorer = scorer_of(gpt);
  const Request request{.prompt = {3}, .tokens = 30, .seed = 7};
  const auto first = generated(*scorer, request);
  Request other = request;
  other.sample = 1;
  const auto second = generated(*scorer, other);
  EXPECT_NE(first, second);
  other.sample = 0;
  other.seed = 8;
  EXPECT_NE(generated(*scorer, other), first);
  EXPECT_EQ(generated(*scorer, request), first);
  EXPECT_EQ(generated(*scorer_of(gpt), request), first);
}

TEST(Generate, MakesOnlyTokensBelow) {
  const TinyGpt gpt(24);
  const auto scorer = scorer_of(gpt);
  for (const std::int32_t token :
       generated(*scorer, {.prompt = {12}, .tokens = 40, .sampling = {.temperature = 5}, .below = 4}))
    EXPECT_LT(token, 4);
}

TEST(Generate, EndsWhenNobodyListens) {
  const TinyGpt gpt(24);
  const auto scorer = scorer_of(gpt);
  int heard = 0;
  EXPECT_TRUE(
      generate(*scorer, {.prompt = {1}, .tokens = 9}, [&](std::int32_t) { return ++heard < 3; }).ok());
  EXPECT_EQ(heard, 3);
}

TEST(Generate, NamesWhatIsWrong) {
  const TinyGpt gpt(24);
  const auto scorer = scorer_of(gpt);
  const auto words = [&](const Request& request) {
    const absl::Status status = generate(*scorer, request, [](std::int32_t) { return true; });
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_THAT(words({}), HasSubstr("prompt is empty"));
  EXPECT_THAT(words({.prompt = {1, 13}}), HasSubstr("token 13; allowed: 0 to 12"));
  EXPECT_THAT(words({.prompt = {-1}}), HasSubstr("token -1"));
  EXPECT_THAT(words({.prompt = {1}, .sampling = {.top_p = 2}}), HasSubstr("top-p"));
}

TEST(Generate, WeightsThatDivergedAreAnError) {
  TinyGpt gpt(24);
  std::fill(gpt.weights.begin(), gpt.weights.end(), NAN);
  const auto scorer = scorer_of(gpt);
  int heard = 0;
  const absl::Status status = generate(*scorer, {.prompt = {1}, .tokens = 9}, [&](std::int32_t) {
    ++heard;
    return true;
  });
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(heard, 0);
}

}  // namespace
}  // namespace paceline::generate

#include "runtime/cuda/embedding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/unit/runtime/cuda/values.h"

namespace paceline::cuda {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

EmbeddingPlan plan_of(const std::vector<std::int32_t>& tokens, std::uint32_t vocabulary) {
  EmbeddingPlan plan;
  EXPECT_TRUE(plan_embedding(tokens, vocabulary, plan).ok());
  return plan;
}

template <typename T>
class EmbeddingTest : public KernelsTest<Embedding> {
 protected:
  Rng rng_{25, 0};
};

using Types = ::testing::Types<float, BFloat16>;
TYPED_TEST_SUITE(EmbeddingTest, Types);

TYPED_TEST(EmbeddingTest, RowsAndTheirGradients) {
  using T = TypeParam;
  struct Shape {
    std::size_t samples, time, width;
  };
  constexpr std::uint32_t kVocabulary = 7;
  // The last token is a third of all; of the last shape all have several pieces, more than there are blocks.
  for (const Shape& shape : {Shape{1, 1, 1}, Shape{3, 5, 8}, Shape{3, 130, 33}, Shape{2, 70, 264},
                             Shape{2, 3, 2308}, Shape{4, 700, 8}, Shape{7, 3, 40}}) {
    const std::size_t samples = shape.samples, time = shape.time, width = shape.width;
    SCOPED_TRACE(::testing::Message() << samples << " x " << time << " x " << width);
    const std::size_t rows = samples * time;
    const auto table = random_values<T>(this->rng_, kVocabulary * width),
               positions = random_values<T>(this->rng_, time * width);
    const auto dy = random_values<T>(this->rng_, rows * width);
    const auto before = random_values<float>(this->rng_, kVocabulary * width);
    std::vector<std::int32_t> tokens(rows);
    for (auto& token : tokens)
      token = static_cast<std::int32_t>(std::min<std::uint64_t>(this->rng_.below(9), 6));
    Doubles y(rows * width), table_gradient = doubles(before);
    for (std::size_t i = 0; i < rows * width; ++i) {
      const std::size_t r = i / width, c = i % width, from = static_cast<std::size_t>(tokens[r]) * width + c;
      y[i] = static_cast<double>(static_cast<float>(table[from])) +
             static_cast<float>(positions[r % time * width + c]);
      table_gradient[from] += static_cast<float>(dy[i]);
    }
    const EmbeddingPlan plan = plan_of(tokens, kVocabulary);
    EXPECT_LE(plan.slots, most_slots(static_cast<std::uint32_t>(rows)));
    std::vector<float> first;
    this->in_both_orders([&] {
      const auto t = this->upload(tokens);
      const auto e = this->upload(table), p = this->upload(positions), d = this->upload(dy);
      const auto out = this->template array<T>(rows * width);
      EmbeddingParams params{.tokens = t.data(),
                             .table = e.data(),
                             .positions = p.data(),
                             .y = out.data(),
                             .rows = static_cast<std::uint32_t>(rows),
                             .time = static_cast<std::uint32_t>(time),
                             .width = static_cast<std::uint32_t>(width),
                             .vocabulary = kVocabulary};
      ASSERT_TRUE(this->kernels_->forward(*this->stream_, kTypeOf<T>, params).ok());
      expect_near(this->download(out), y, 1e-6);
      params.positions = nullptr;
      ASSERT_TRUE(this->kernels_->forward(*this->stream_, kTypeOf<T>, params).ok());
      EXPECT_EQ(doubles(this->download(out))[0], doubles(table)[static_cast<std::size_t>(tokens[0]) * width]);

      const auto order = this->upload(plan.order);
      const auto pieces = this->upload(plan.pieces);
      const auto joins = this->upload(plan.joins.empty() ? std::vector<EmbeddingJoin>(1) : plan.joins);
      const auto counts = this->upload(std::vector<EmbeddingCounts>{plan.counts()});
      const auto partials = this->template array<float>(plan.slots * width + 1);
      const auto gradient = this->upload(before);
      ASSERT_TRUE(this->kernels_
                      ->backward(*this->stream_, kTypeOf<T>,
                                 {.counts = counts.data(),
                                  .pieces = pieces.data(),
                                  .order = order.data(),
                                  .dy = d.data(),
                                  .gradient = gradient.data(),
                                  .partials = partials.data(),
                                  .width = static_cast<std::uint32_t>(width)},
                                 joins.data(), most_counts(static_cast<std::uint32_t>(rows), kVocabulary))
                      .ok());
      const auto got = this->download(gradient);
      expect_near(got, table_gradient, 2e-6, 10);
      EXPECT_TRUE(first.empty() || same_bits(first, got));
      first = got;
    });
  }
}

TYPED_TEST(EmbeddingTest, ATokenThatTheTableLacksIsNoNumber) {
  using T = TypeParam;
  const auto tokens = this->upload(std::vector<std::int32_t>{0, -1, 2, 1});
  const auto table = this->upload(std::vector<T>(2 * 3, T(1)));
  const auto y = this->template array<T>(4 * 3);
  ASSERT_TRUE(this->kernels_
                  ->forward(*this->stream_, kTypeOf<T>,
                            {.tokens = tokens.data(),
                             .table = table.data(),
                             .positions = nullptr,
                             .y = y.data(),
                             .rows = 4,
                             .time = 4,
                             .width = 3,
                             .vocabulary = 2})
                  .ok());
  const Doubles values = doubles(this->download(y));
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_EQ(std::isnan(values[i]), i / 3 == 1 || i / 3 == 2) << i;
}

TEST(EmbeddingPlans, OrderRowsByTokenAndCutTheManyIntoPieces) {
  const EmbeddingPlan small = plan_of(std::vector<std::int32_t>{2, 0, 2, 4}, 5);
  EXPECT_THAT(small.order, ElementsAre(1, 0, 2, 3));
  EXPECT_THAT(small.pieces, ElementsAre(EmbeddingPiece{0, 0, 1, -1}, EmbeddingPiece{2, 1, 3, -1},
                                        EmbeddingPiece{4, 3, 4, -1}));
  EXPECT_THAT(small.joins, IsEmpty());

  std::vector<std::int32_t> many(130, 1);
  many[7] = 0;
  const EmbeddingPlan large = plan_of(many, 2);
  EXPECT_THAT(large.pieces, ElementsAre(EmbeddingPiece{0, 0, 1, -1}, EmbeddingPiece{1, 1, 65, 0},
                                        EmbeddingPiece{1, 65, 129, 1}, EmbeddingPiece{1, 129, 130, 2}));
  EXPECT_THAT(large.joins, ElementsAre(EmbeddingJoin{1, 0, 3}));
  EXPECT_EQ(large.slots, 3U);
  EXPECT_EQ(large.counts(), (EmbeddingCounts{4, 1}));
  EXPECT_EQ(plan_of({}, 3).pieces.size(), 0U);
  Rng rng(3, 0);
  for (std::uint32_t rows = 0; rows < 1000; ++rows) {
    for (const std::uint32_t vocabulary : {1U, 3U, 7U, 2000U}) {
      std::vector<std::int32_t> tokens(rows);
      for (auto& t : tokens) t = static_cast<std::int32_t>(rng.below(vocabulary));
      const EmbeddingPlan plan = plan_of(tokens, vocabulary);
      const EmbeddingCounts most = most_counts(rows, vocabulary);
      ASSERT_LE(plan.slots, most_slots(rows));
      ASSERT_LE(plan.counts().pieces, most.pieces);
      ASSERT_LE(plan.counts().joins, most.joins);
    }
  }
}

// Of the plan before nothing is left.
TEST(EmbeddingPlans, AreMadeInTheSameMemory) {
  EmbeddingPlan plan;
  ASSERT_TRUE(plan_embedding(std::vector<std::int32_t>(500, 1), 3, plan).ok());
  const auto* memory = plan.order.data();
  const std::vector<std::int32_t> tokens = {2, 0, 2};
  ASSERT_TRUE(plan_embedding(tokens, 3, plan).ok());
  const EmbeddingPlan fresh = plan_of(tokens, 3);
  EXPECT_EQ(plan.order, fresh.order);
  EXPECT_EQ(plan.pieces, fresh.pieces);
  EXPECT_EQ(plan.joins, fresh.joins);
  EXPECT_EQ(plan.slots, fresh.slots);
  EXPECT_EQ(plan.order.data(), memory);
}

TEST(EmbeddingPlans, ATokenOutsideIsRefused) {
  EmbeddingPlan plan;
  EXPECT_EQ(plan_embedding(std::vector<std::int32_t>{0, 5}, 5, plan).message(),
            "token 5 of row 1 is not in [0, 5)");
  EXPECT_TRUE(absl::IsInvalidArgument(plan_embedding(std::vector<std::int32_t>{-1}, 5, plan)));
}

}  // namespace
}  // namespace paceline::cuda

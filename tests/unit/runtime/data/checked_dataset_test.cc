#include "runtime/data/checked_dataset.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace paceline::data {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Samples of three fields and one label, as they are given.
class Given final : public Dataset {
 public:
  Given(std::vector<std::int32_t> tokens, std::vector<std::int32_t> labels)
      : tokens_(std::move(tokens)), labels_(std::move(labels)) {
    shape_.kind = InputKind::kTokens;
    shape_.dims = {3};
  }
  const SampleShape& shape() const override { return shape_; }
  std::int64_t size() const override { return static_cast<std::int64_t>(labels_.size()); }
  absl::Status fetch(std::span<const std::int64_t> indices, std::uint64_t,
                     const BatchView& batch) const override {
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const auto sample = static_cast<std::size_t>(indices[i]);
      for (std::size_t f = 0; f < 3; ++f) batch.tokens[i * 3 + f] = tokens_[sample * 3 + f];
      batch.labels[i] = labels_[sample];
    }
    return absl::OkStatus();
  }
  SampleShape shape_;

 private:
  const std::vector<std::int32_t> tokens_, labels_;
};

struct Fetched {
  absl::Status status;
  std::vector<std::int32_t> tokens, labels;
};
Fetched fetch(const Given& given, const ValueLimits& limits, const std::vector<std::int64_t>& indices) {
  const auto checked = check_values(std::make_shared<Given>(given), "the training set of 'own'", limits);
  if (!checked.ok()) return {checked.status(), {}, {}};
  EXPECT_EQ((*checked)->size(), given.size());
  EXPECT_EQ((*checked)->shape().dims, given.shape().dims);
  Fetched fetched{absl::OkStatus(), std::vector<std::int32_t>(indices.size() * 3),
                  std::vector<std::int32_t>(indices.size())};
  fetched.status = (*checked)->fetch(indices, 0, {{}, fetched.tokens, fetched.labels});
  return fetched;
}

TEST(CheckedDataset, GivesTheSameSamples) {
  const Given given({1, 2, 3, 4, 5, 2147483647}, {0, 1});
  const Fetched fetched = fetch(given, {.tokens = 0, .classes = 2}, {1, 0});
  EXPECT_TRUE(fetched.status.ok()) << fetched.status;
  EXPECT_THAT(fetched.tokens, ElementsAre(4, 5, 2147483647, 1, 2, 3));
  EXPECT_THAT(fetched.labels, ElementsAre(1, 0));
}

TEST(CheckedDataset, NamesTheSampleTheFieldAndTheValue) {
  struct Case {
    Given given;
    ValueLimits limits;
    const char* said;
  };
  Given sized({0, 1, 9, 0, 2, 9}, {0, 0});
  sized.shape_.vocabularies = {1, 2, 10};
  for (const Case& c : std::vector<Case>{
           {Given({0, 0, 0, 0, -7, 0}, {0, 0}), {}, "sample 1, field 1 is -7; allowed: 0 to 2147483647"},
           {Given({0, 0, 0, 0, 0, 50}, {0, 0}), {.tokens = 50}, "sample 1, field 2 is 50; allowed: 0 to 49"},
           {sized, {}, "sample 1, field 1 is 2; allowed: 0 to 1"},
           {Given({0, 0, 0, 0, 0, 0}, {1, 2}), {.classes = 2}, "sample 1, label 0 is 2; allowed: 0 to 1"},
           {Given({0, 0, 0, 0, 0, 0}, {1, -1}), {.classes = 2}, "sample 1, label 0 is -1; allowed: 0 to 1"},
       }) {
    const absl::Status status = fetch(c.given, c.limits, {0, 1}).status;
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("the training set of 'own': "));
    EXPECT_THAT(std::string(status.message()), HasSubstr(c.said));
    EXPECT_TRUE(fetch(c.given, c.limits, {0}).status.ok()) << "the other sample";
  }
}

TEST(CheckedDataset, LabelsOfAModelThatSaysNothingOfThemAreAny) {
  EXPECT_TRUE(fetch(Given({0, 0, 0}, {-5}), {}, {0}).status.ok());
}

TEST(CheckedDataset, VocabulariesAreOneForEachField) {
  Given given({0, 0, 0}, {0});
  given.shape_.vocabularies = {5, 5};
  EXPECT_THAT(std::string(fetch(given, {}, {0}).status.message()), HasSubstr("one for each of the 3 fields"));
  given.shape_.vocabularies = {5, 0, 5};
  EXPECT_THAT(std::string(fetch(given, {}, {0}).status.message()), HasSubstr("field 1 has 0 values"));
}

class Endless final : public Dataset {
 public:
  Endless() { shape_.dims = {2}; }
  const SampleShape& shape() const override { return shape_; }
  std::int64_t size() const override { return 9; }
  absl::Status fetch(std::span<const std::int64_t>, std::uint64_t, const BatchView& batch) const override {
    batch.inputs.back() = std::numeric_limits<float>::infinity();
    return absl::OkStatus();
  }

 private:
  SampleShape shape_;
};

TEST(CheckedDataset, NamesTheSampleAndTheFeatureThatIsNotFinite) {
  const auto checked = check_values(std::make_shared<Endless>(), "the training set of 'own'", {});
  ASSERT_TRUE(checked.ok());
  std::vector<float> inputs(4);
  std::vector<std::int32_t> labels(2);
  const absl::Status status = (*checked)->fetch(std::vector<std::int64_t>{3, 5}, 0, {inputs, {}, labels});
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the training set of 'own': sample 5, feature 1 is inf; allowed: finite numbers"));
}

}  // namespace
}  // namespace paceline::data

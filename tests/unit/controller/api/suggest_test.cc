#include "controller/api/suggest.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/rng.h"

namespace paceline::api {
namespace {

TEST(Suggest, CountsEdits) {
  const struct {
    const char *a, *b;
    int distance;
  } kCases[] = {{"", "", 0},           {"", "abc", 3},           {"same", "same", 0},
                {"Same", "sAME", 0},   {"kitten", "sitting", 3}, {"steps", "stpes", 1},
                {"steps", "step", 1},  {"ab", "ba", 1},          {"abc", "xyz", 3},
                {"hidden", "hiden", 1}};
  for (const auto& c : kCases) {
    EXPECT_EQ(edit_distance(c.a, c.b), c.distance) << c.a << " " << c.b;
    EXPECT_EQ(edit_distance(c.b, c.a), c.distance) << c.b << " " << c.a;
  }
}

// The definition, by trying everything.
int slow_distance(std::string_view a, std::string_view b) {
  if (a.empty() || b.empty()) return static_cast<int>(a.size() + b.size());
  const int replaced = slow_distance(a.substr(1), b.substr(1)) + (a[0] == b[0] ? 0 : 1);
  int best = std::min({replaced, slow_distance(a.substr(1), b) + 1, slow_distance(a, b.substr(1)) + 1});
  if (a.size() > 1 && b.size() > 1 && a[0] == b[1] && a[1] == b[0]) {
    best = std::min(best, slow_distance(a.substr(2), b.substr(2)) + 1);
  }
  return best;
}

TEST(Suggest, AgreesWithTheDefinition) {
  Rng rng(7, 0);
  const auto word = [&] {
    std::string text;
    for (std::uint64_t i = rng.below(6); i > 0; --i) text += static_cast<char>('a' + rng.below(3));
    return text;
  };
  for (int round = 0; round < 300; ++round) {
    const std::string a = word(), b = word();
    EXPECT_EQ(edit_distance(a, b), slow_distance(a, b)) << "seed 7: " << a << " " << b;
  }
}

TEST(Suggest, NearestNameIsNearEnoughOrNone) {
  const std::vector<std::string> names{"learningRate", "momentum", "type"};
  EXPECT_EQ(nearest_name("learningRat", names), "learningRate");
  EXPECT_EQ(nearest_name("LearningRate", names), "learningRate");
  EXPECT_EQ(nearest_name("tpye", names), "type");
  EXPECT_EQ(nearest_name("dropout", names), "");
  EXPECT_EQ(nearest_name("", names), "");
  EXPECT_EQ(nearest_name(std::string(100'000, 'x'), names), "");
}

TEST(Suggest, MeantNameIsFoundByItsBeginningInitialsOrEnd) {
  const std::vector<std::string> fields{"globalBatchSize", "microBatchSize", "learningRate", "steps"};
  EXPECT_EQ(meant_name("lr", fields), "learningRate");
  EXPECT_EQ(meant_name("batchSize", fields), "globalBatchSize");
  EXPECT_EQ(meant_name("Micro", fields), "microBatchSize");
  EXPECT_EQ(meant_name("stpes", fields), "steps");
  const std::vector<std::string> modes{"Synchronous", "Asynchronous", "BoundedStaleness", "BackupWorkers"};
  EXPECT_EQ(meant_name("async", modes), "Asynchronous");
  EXPECT_EQ(meant_name("sync", modes), "Synchronous");
  for (const char* none : {"", "B", "zz", "ize", "dropout"}) EXPECT_EQ(meant_name(none, modes), "") << none;
}

}  // namespace
}  // namespace paceline::api

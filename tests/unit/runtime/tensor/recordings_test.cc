#include "runtime/tensor/recordings.h"

#include <gtest/gtest.h>

namespace paceline::tensor {
namespace {

struct Numbered final : Recording {
  Numbered(int n, int& all) : number(n), count(all) { ++count; }
  ~Numbered() override { --count; }
  int number;
  int& count;
};

RunContext with_scale(float scale) {
  RunContext context;
  context.scale = scale;
  return context;
}
int number(const std::unique_ptr<Recording>& recording) {
  return recording == nullptr ? -1 : static_cast<const Numbered&>(*recording).number;
}

TEST(Recordings, AreOfWhatRunsLookAt) {
  int count = 0;
  Recordings recordings;
  RunContext context = with_scale(2);
  recordings.of(context, 3) = std::make_unique<Numbered>(7, count);
  EXPECT_EQ(number(recordings.of(context, 2)), -1);
  const std::int32_t token = 5;
  context.weights_version = 9;
  context.tokens = {&token, 1};
  EXPECT_EQ(number(recordings.of(context, 3)), 7) << "what is prepared changes nothing";
  RunContext other = context;
  other.accumulate = true;
  EXPECT_EQ(number(recordings.of(other, 3)), -1);
  other = context;
  other.whole_pass = true;
  EXPECT_EQ(number(recordings.of(other, 3)), -1);
  other = context;
  other.scale = 3;
  EXPECT_EQ(number(recordings.of(other, 3)), -1);
  recordings.clear();
  EXPECT_EQ(count, 0);
  EXPECT_EQ(number(recordings.of(context, 3)), -1);
}

TEST(Recordings, TheOneUsedLongestAgoMakesRoom) {
  int count = 0;
  Recordings recordings;
  constexpr int kMost = static_cast<int>(Recordings::kMostKinds);
  for (int i = 0; i < kMost; ++i) {
    recordings.of(with_scale(static_cast<float>(i)), 0) = std::make_unique<Numbered>(i, count);
  }
  EXPECT_EQ(number(recordings.of(with_scale(0), 0)), 0);
  recordings.of(with_scale(100), 0) = std::make_unique<Numbered>(100, count);
  EXPECT_EQ(count, kMost);
  EXPECT_EQ(number(recordings.of(with_scale(0), 0)), 0);
  EXPECT_EQ(number(recordings.of(with_scale(100), 0)), 100);
  EXPECT_EQ(number(recordings.of(with_scale(1), 0)), -1);
}

}  // namespace
}  // namespace paceline::tensor

#include "runtime/agent/step_line.h"

#include <gtest/gtest.h>

namespace paceline::agent {
namespace {

constexpr std::int64_t kMs = 1'000'000;

TEST(StepLineTest, TheStepAndAnOwnTimeAreALine) {
  const auto line = parse_step_line("step=12 compute_ms=31.5");
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->step, 12);
  EXPECT_EQ(line->times.compute, 31 * kMs + kMs / 2);
  EXPECT_EQ(line->times.step, line->times.compute);
  EXPECT_EQ(line->unknown, "");
}

TEST(StepLineTest, AllTimesAreReadInAnyOrder) {
  const auto line = parse_step_line(
      "  total_ms=100 update_ms=4\tcheckpoint_ms=6 transfer_ms=5 wait_ms=3e1 compute_ms=2 input_ms=1 "
      "step=7\r");
  ASSERT_TRUE(line.ok()) << line.status();
  const member::StepTimes& times = line->times;
  EXPECT_EQ(line->step, 7);
  EXPECT_EQ(times.input, kMs);
  EXPECT_EQ(times.compute, 2 * kMs);
  EXPECT_EQ(times.wait, 30 * kMs);
  EXPECT_EQ(times.update, 4 * kMs);
  EXPECT_EQ(times.transfer, 5 * kMs);
  EXPECT_EQ(times.checkpoint, 6 * kMs);
  EXPECT_EQ(times.step, 100 * kMs);
}

TEST(StepLineTest, AWholeStepIsNoShorterThanItsParts) {
  const auto line = parse_step_line("step=1 input_ms=10 compute_ms=10 total_ms=5");
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->times.step, 20 * kMs);
}

TEST(StepLineTest, AKeyThatIsNotKnownDoesNoHarm) {
  const auto line = parse_step_line("step=1 loss=nan compute_ms=1 rank=0");
  ASSERT_TRUE(line.ok()) << line.status();
  EXPECT_EQ(line->unknown, "loss");
  EXPECT_EQ(line->times.compute, kMs);
}

TEST(StepLineTest, MalformedLineIsRefused) {
  for (const char* text : {"",
                           "step",
                           "=1",
                           "step=1",
                           "compute_ms=1",
                           "step=1 total_ms=3",
                           "step=1 wait_ms=3",
                           "step=0 compute_ms=1",
                           "step=-1 compute_ms=1",
                           "step=1.5 compute_ms=1",
                           "step=1x compute_ms=1",
                           "step= compute_ms=1",
                           "step=99999999999999999999 compute_ms=1",
                           "step=9007199254740993 compute_ms=1",
                           "step=1 compute_ms=",
                           "step=1 compute_ms=-1",
                           "step=1 compute_ms=nan",
                           "step=1 compute_ms=inf",
                           "step=1 compute_ms=1s",
                           "step=1 compute_ms=86400001",
                           "step=1 compute_ms=1e400",
                           "step=1 step=2 compute_ms=1",
                           "step=1 compute_ms=1 compute_ms=1",
                           "step=1, compute_ms=1"}) {
    EXPECT_EQ(parse_step_line(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(StepLineTest, ALineHasABoundedLength) {
  std::string text = "step=1 compute_ms=1 ";
  text.resize(kMostLineBytes, ' ');
  EXPECT_TRUE(parse_step_line(text).ok());
  text += ' ';
  EXPECT_EQ(parse_step_line(text).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace paceline::agent

#include "cli/commands/straggler_replay.h"

#include <gtest/gtest.h>

#include <string>

#include "base/text.h"

namespace paceline::cli {
namespace {

std::string member_step(int member, int step, int compute_ms, int wait_ms) {
  return str_cat(R"({"type":"memberStep","member":"worker-)", member, R"(","step":)", step,
                 R"(,"inputMs":0,"computeMs":)", compute_ms, R"(,"waitMs":)", wait_ms,
                 R"(,"transferMs":1,"updateMs":0,"checkpointMs":0,"stepMs":601})", "\n");
}

// Three members whose steps take 300 ms, and worker-1's twice that between `from` and `to`.
std::string run(int steps, int from, int to) {
  std::string text;
  for (int step = 1; step <= steps; ++step) {
    const bool slow = step >= from && step < to;
    for (int member = 0; member < 3; ++member) {
      const int own = slow && member == 1 ? 600 : 300;
      text += member_step(member, step, own, 600 - own);
    }
    text += str_cat(R"({"type":"step","step":)", step, R"(,"loss":1})", "\n");
  }
  return text;
}

const std::string kView = R"({"type":"view","generation":1,"members":["worker-0","worker-1","worker-2"]})"
                          "\n";

TEST(StragglerReplay, RecordedStragglerIsFoundAndCleared) {
  for (const std::string& head : {kView, std::string()}) {
    const Replay replay = replay_stragglers(head + run(200, 50, 120));
    ASSERT_EQ(replay.events.size(), 2U);
    EXPECT_TRUE(replay.events[0].found);
    EXPECT_EQ(replay.events[0].member, "worker-1");
    EXPECT_EQ(replay.events[0].finding.kind, stragglers::FindingKind::kSlow);
    EXPECT_GE(replay.events[0].step, 50);
    EXPECT_LT(replay.events[0].step, 90);
    EXPECT_FALSE(replay.events[1].found);
    EXPECT_TRUE(replay.knows);
    ASSERT_EQ(replay.members.size(), 3U);
    EXPECT_EQ(replay.members[1].name, "worker-1");
    EXPECT_FALSE(replay.members[1].standing.found);
  }
}

TEST(StragglerReplay, MemberThatIsFoundStandsSo) {
  const Replay replay = replay_stragglers(kView + run(100, 50, 1000));
  ASSERT_EQ(replay.members.size(), 3U);
  EXPECT_TRUE(replay.members[1].standing.found);
  EXPECT_DOUBLE_EQ(replay.members[1].standing.ratio, 2);
  EXPECT_EQ(replay.members[1].standing.evidence, 1);
  EXPECT_EQ(replay.members[0].standing.evidence, 0);
}

TEST(StragglerReplay, MemberThatLeftIsNotWaitedFor) {
  std::string text = kView + run(50, 1000, 1000);
  text += R"({"type":"view","generation":2,"members":["worker-0","worker-2"]})"
          "\n";
  for (int step = 51; step < 200; ++step) {
    text += member_step(0, step, 300, 300);
    text += member_step(2, step, 600, 0);
  }
  const Replay replay = replay_stragglers(text);
  ASSERT_EQ(replay.events.size(), 1U);
  EXPECT_EQ(replay.events[0].member, "worker-2");
  EXPECT_EQ(replay.members.size(), 2U);
}

TEST(StragglerReplay, LinesThatMakeNoSenseArePassedOver) {
  for (const char* text :
       {"", "\n", "x\n", "{}\n", R"({"type":7})", R"({"type":"view","members":[1,{}]})",
        R"({"type":"memberStep","member":"worker-0"})", R"({"type":"memberStep","member":1,"step":"x"})"}) {
    SCOPED_TRACE(text);
    const Replay replay = replay_stragglers(text);
    EXPECT_EQ(replay.last, 0);
    EXPECT_FALSE(replay.knows);
    EXPECT_EQ(replay_lines(replay).size(), 1U);
    EXPECT_TRUE(recorded_steps(text).empty());
  }
}

TEST(StragglerReplay, RecordedStepsAreInTheOrderOfTheirLines) {
  const std::vector<RecordedStep> steps = recorded_steps(kView + member_step(1, 7, 600, 0) +
                                                         R"({"type":"step","step":7})"
                                                         "\n" +
                                                         member_step(0, 7, 300, 299));
  ASSERT_EQ(steps.size(), 2U);
  EXPECT_EQ(steps[0].member, "worker-1");
  EXPECT_EQ(steps[1].member, "worker-0");
  EXPECT_EQ(steps[1].sample.step, 7);
  EXPECT_EQ(steps[1].sample.compute, std::chrono::milliseconds(300));
  EXPECT_EQ(steps[1].sample.wait, std::chrono::milliseconds(299));
  EXPECT_EQ(steps[1].sample.transfer, std::chrono::milliseconds(1));
}

TEST(StragglerReplay, LinesTellOfEventsAndMembers) {
  const Replay replay = replay_stragglers(kView + run(200, 50, 120));
  EXPECT_EQ(replay_lines(replay).size(), 1 + 2 + 4 + 1U);
}

}  // namespace
}  // namespace paceline::cli

#include <gtest/gtest.h>

#include <sstream>

#include "base/text.h"
#include "cli/run/output.h"

namespace paceline::cli {
namespace {

int count(const std::string& text, const std::string& word) {
  int found = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

// On a terminal every such line pushes another one out of sight.
TEST(LiveOutput, ManyEvaluationsScrollNothingAway) {
  std::ostringstream out;
  const auto output = make_live_output(out, -1);
  RunState state;
  state.target = "accuracy >= 0.9";
  for (int i = 1; i <= 1000; ++i) {
    output->evaluation(state, {.step = i, .loss = 0.5, .accuracy = 0.5});
    output->checkpoint({.step = i, .error = "no space"});
  }
  output->evaluation(state, {.step = 1001, .loss = 0.5, .accuracy = 0.95, .target_reached = true});
  EXPECT_EQ(count(out.str(), "test loss"), 8 + 6 + 1) << "the first 8; 16, 32, ... 512; the target's";
  EXPECT_EQ(count(out.str(), "no space"), 8 + 6);
  EXPECT_EQ(count(out.str(), "all are in metrics.jsonl"), 1);
  EXPECT_EQ(count(out.str(), "the target accuracy >= 0.9 is reached"), 1);
}

TEST(PlainOutput, SaysEveryEvaluation) {
  std::ostringstream out;
  const auto output = make_plain_output(out);
  for (int i = 1; i <= 100; ++i) output->evaluation({}, {.step = i, .loss = 0.5, .accuracy = 0.5});
  EXPECT_EQ(count(out.str(), "test loss"), 100);
  EXPECT_EQ(count(out.str(), "AUC"), 0);
  output->evaluation({}, {.step = 101, .loss = 0.5, .accuracy = 0.75, .auc = 0.7125});
  EXPECT_EQ(count(out.str(), "step 101: test loss 0.5000, accuracy 75.00 %, AUC 0.7125\n"), 1);
}

// Else its line stands before those of evaluations of earlier steps.
TEST(PlainOutput, StepsOfWhichNothingIsToldYetHaveNoLine) {
  std::ostringstream out;
  const auto output = make_plain_output(out);
  RunState state{.progress = {.step = 166, .total_steps = 200}};
  output->progress(state);
  EXPECT_EQ(out.str(), "");
  state.progress.loss = 0.5;
  output->progress(state);
  EXPECT_EQ(count(out.str(), "step 166/200"), 1);
}

TEST(PlainOutput, AnEvaluatorsLineSaysWhoEvaluatedWhichCheckpoint) {
  std::ostringstream out;
  const auto output = make_plain_output(out);
  output->evaluation({}, {.step = 20, .loss = 0.5, .accuracy = 0.75, .observer = "evaluator-0"});
  EXPECT_EQ(out.str(), "evaluator-0, checkpoint of step 20: test loss 0.5000, accuracy 75.00 %\n");
}

TEST(JsonOutput, AnEvaluatorsEventNamesIt) {
  std::ostringstream out;
  const auto output = make_json_output(out, false);
  output->evaluation({}, {.step = 20, .observer = "evaluator-1"});
  EXPECT_EQ(count(out.str(), R"("evaluator":"evaluator-1")"), 1);
  output->evaluation({}, {.step = 30});
  EXPECT_EQ(count(out.str(), "evaluator"), 2) << "no word of one where those who train evaluate";
}

TEST(JsonOutput, ACheckpointThatNobodyToldOfHasNoStall) {
  std::ostringstream out;
  const auto output = make_json_output(out, false);
  output->checkpoint({.step = 20, .path = "c/step-20", .stall = std::chrono::milliseconds(250), .bytes = 7});
  EXPECT_EQ(out.str(), R"({"type":"checkpoint","step":20,"path":"c/step-20","bytes":7,"stallSeconds":0.25})"
                       "\n");
  output->checkpoint({.step = 30, .path = "c/step-30", .bytes = 8});
  EXPECT_EQ(count(out.str(), R"({"type":"checkpoint","step":30,"path":"c/step-30","bytes":8})"), 1);
}

// nlohmann's dump() escapes no others than those below a space.
TEST(JsonOutput, ATerminalGetsNoControlCharacters) {
  for (const bool terminal : {false, true}) {
    std::ostringstream out;
    make_json_output(out, terminal)
        ->note(
            "a\x7f"
            "b\xc2\x9b"
            "c");
    EXPECT_EQ(out.str(), terminal ? "{\"type\":\"note\",\"message\":\"a\\x7f"
                                    "b\\xc2\\x9b"
                                    "c\"}\n"
                                  : "{\"type\":\"note\",\"message\":\"a\x7f"
                                    "b\xc2\x9b"
                                    "c\"}\n");
  }
}

TEST(TextOutput, AStrangersStyleIsShownNotDone) {
  const RunState state{.name = "a\x1b[31m", .phase = "Failed", .reason = "b\x1b[31m"};
  for (const bool live : {false, true}) {
    std::ostringstream out;
    {
      const auto output = live ? make_live_output(out, -1) : make_plain_output(out);
      output->checkpoint({.step = 1, .path = "", .error = "c\x1b[31m"});
      output->note("d\x1b[31m");
      output->finished(state);
    }
    EXPECT_EQ(count(out.str(), "\x1b[31m"), 0) << out.str();
    for (const char* const shown : {"a\\x1b[31m", "(b\\x1b[31m)", "c\\x1b[31m", "d\\x1b[31m"})
      EXPECT_GE(count(out.str(), shown), 1) << out.str();
  }
}

}  // namespace
}  // namespace paceline::cli

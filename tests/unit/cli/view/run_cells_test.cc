#include "cli/view/run_cells.h"

#include <gtest/gtest.h>

namespace paceline::cli {
namespace {

TEST(RunCellsTest, WhatIsNotKnownIsADash) {
  EXPECT_EQ(progress_cells({}), (std::vector<std::string>{"-", "-", "-", "-"}));
  RunState own_program;
  own_program.progress.step = 1080;
  EXPECT_EQ(progress_cells(own_program)[0], "1080") << "nobody knows how many there will be";
  RunState state;
  state.progress.step = 5;
  state.progress.total_steps = 10;
  state.progress.loss = 0.5;
  state.progress.test_accuracy = 0.75;
  state.progress.samples_per_second = 12345.6;
  EXPECT_EQ(progress_cells(state), (std::vector<std::string>{"5/10", "0.5000", "75.00 %", "12,345"}));
  state.progress.test_auc = 0.7125;
  EXPECT_EQ(progress_cells(state)[2], "AUC 0.7125") << "what such a model is trained for";
}

TEST(RunCellsTest, Targets) {
  api::Training training;
  EXPECT_EQ(target_text(training), "");
  training.target = api::Target{.accuracy = 0.9};
  EXPECT_EQ(target_text(training), "accuracy >= 0.9");
  training.target = api::Target{.loss = 1.5};
  EXPECT_EQ(target_text(training), "loss <= 1.5");
  training.target = api::Target{.auc = 0.7};
  EXPECT_EQ(target_text(training), "auc >= 0.7");
}

}  // namespace
}  // namespace paceline::cli

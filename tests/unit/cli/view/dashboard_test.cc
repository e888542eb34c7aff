#include "cli/view/dashboard.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "absl/strings/str_join.h"
#include "base/category.h"

namespace paceline::cli {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

RunState running() {
  RunState state;
  state.name = "digits";
  state.phase = "Running";
  state.generation = 1;
  state.progress.step = 50;
  state.progress.total_steps = 200;
  state.progress.epoch = 1.25;
  state.progress.loss = 0.5;
  state.progress.test_accuracy = 0.875;
  state.target = "accuracy >= 0.9";
  state.progress.samples_per_second = 12345;
  state.progress.eta_seconds = 3;
  state.elapsed_seconds = 2;
  state.owner_pid = 1;
  for (const Role role : {Role::kChief, Role::kWorker}) {
    state.members.push_back({.role = role,
                             .rank = static_cast<std::int64_t>(state.members.size()),
                             .pid = 7,
                             .phase = "Training",
                             .step = 50,
                             .telemetry = {.compute_ms = 1.5, .wait_ms = 0.25, .step_ms = 2}});
  }
  return state;
}

TEST(DashboardTest, TheViewsMembersAreThoseInIt) {
  RunState state = running();
  state.members.push_back({.role = Role::kWorker, .index = 1, .phase = "standby"});
  const std::string with_one_that_stands_by = render_dashboard(state, Terminal{})[0];
  EXPECT_EQ(with_one_that_stands_by, render_dashboard(running(), Terminal{})[0]);
  state.members[1].rank = -1;
  EXPECT_NE(render_dashboard(state, Terminal{})[0], with_one_that_stands_by);
}

TEST(DashboardTest, StaleStatusIsMarked) {
  RunState state = running();
  for (const char* const reason : {api::kOwnerStopped, api::kStatusOld}) {
    state.reason = reason;
    EXPECT_NE(render_dashboard(state, Terminal{})[0], render_dashboard(running(), Terminal{})[0]) << reason;
  }
}

TEST(DashboardTest, ShowsProgressAndEveryMember) {
  const std::string text = absl::StrJoin(render_dashboard(running(), Terminal{}), "\n");
  EXPECT_EQ(text, R"(digits  Running  view 1, 2 members  2.0 s
########----------------------  25 %  step 50/200  epoch 1.2
loss 0.5000  accuracy 87.50 %  (target accuracy >= 0.9)  12,345 samples/s  ETA 3.0 s

MEMBER    PID  PHASE     STEP  INPUT  COMPUTE  WAIT  TRANSFER  UPDATE  TOTAL ms
chief-0     7  Training    50      -     1.50  0.25         -       -      2.00
worker-0    7  Training    50      -     1.50  0.25         -       -      2.00)");
}

TEST(DashboardTest, TellsOfSharesWhileTheyAreNotEven) {
  RunState state = running();
  const std::size_t before = render_dashboard(state, Terminal{}).size();
  state.status.view.rebalance = api::Rebalance{.even = false, .message = "worker-0 takes 20 of 96"};
  EXPECT_EQ(render_dashboard(state, Terminal{}).size(), before + 1);
  state.status.view.rebalance->even = true;
  EXPECT_EQ(render_dashboard(state, Terminal{}).size(), before);
}

TEST(DashboardTest, TellsOfSamplesThatWereLeftOut) {
  RunState state = running();
  state.samples = 40'000;
  const std::size_t before = render_summary(state, Terminal{}).size();
  state.progress.dropped_samples = 1234;
  EXPECT_EQ(render_summary(state, Terminal{}).size(), before + 1);
  EXPECT_NE(absl::StrJoin(render_dashboard(state, Terminal{}), "\n").find("1,234"), std::string::npos);
}

RunState with_servers() {
  RunState state = running();
  state.members[1].telemetry.staleness = StalenessTelemetry{
      .applied = 1200, .dropped = 3, .max = 5, .mean = 1.25, .wait_seconds = 2.5, .histogram = {}};
  state.members.push_back({.role = Role::kServer, .rank = 2, .pid = 9, .phase = "training", .step = 50});
  state.members.back().telemetry.server = ServerTelemetry{
      .load = 0.375,
      .bytes_per_second = 812.25e6,
      .queue = 2,
      .updates = 1204,
      .rows = 10'000,
      .row_bytes = 3 << 20,
      .rows_evicted = 1'200,
      .hottest = {{"deep", category_id({2, 17}), 1203}, {"wide", 1, 99}, {"wide", category_id({0, 0}), 1}}};
  state.members.push_back({.role = Role::kEvaluator, .phase = "evaluating"});
  return state;
}

TEST(DashboardTest, ServersAndStalenessHaveTheirTables) {
  const auto lines = render_dashboard(with_servers(), Terminal{});
  EXPECT_THAT(lines[0], HasSubstr("view 1, 3 members")) << "the evaluator is none";
  const std::string text = absl::StrJoin(lines, "\n");
  EXPECT_THAT(text, HasSubstr("ps-0           9  training       -")) << "servers take no steps";
  EXPECT_THAT(text, EndsWith(R"(
SERVER  LOAD  QUEUE   MB/s  UPDATES    ROWS   MEMORY  EVICTED  HOTTEST
ps-0    38 %      2  812.2    1,204  10,000  3.0 MiB    1,200  deep: field 2 = 17 (1,203), wide: id 0x0000000000000001 (hashed) (99), wide: field 0 = 0 (1)

GRADIENTS OF  APPLIED  DROPPED  STALENESS  MAX  WAITED
worker-0        1,200        3       1.25    5   2.5 s)"));
  RunState stale = with_servers();
  stale.members[1].telemetry.staleness->histogram = {600, 300, 100, 0, 120, 80};
  EXPECT_THAT(absl::StrJoin(render_dashboard(stale, Terminal{}), "\n"),
              EndsWith("    5   2.5 s\n"
                       "staleness of 1,200 gradients:  0: 50 %  1: 25 %  2: 8 %  3-4: 10 %  5-8: 7 %"));
  EXPECT_THAT(absl::StrJoin(render_members(with_servers(), Terminal{}), "\n"),
              HasSubstr("deep: field 2 = 17"));
}

TEST(DashboardTest, ServersWithoutTablesHaveNoColumnsOfThem) {
  RunState state = with_servers();
  state.members[2].telemetry.server = ServerTelemetry{.updates = 7};
  const std::string text = absl::StrJoin(render_members(state, Terminal{}), "\n");
  EXPECT_THAT(text, HasSubstr("SERVER  LOAD  QUEUE  MB/s  UPDATES\nps-0     0 %      0   0.0        7\n"));
}

TEST(DashboardTest, AnAucTakesTheAccuracysPlace) {
  RunState state = running();
  state.progress.test_auc = 0.71234;
  EXPECT_THAT(absl::StrJoin(render_dashboard(state, Terminal{}), "\n"),
              HasSubstr("loss 0.5000  AUC 0.7123  ("));
  const std::string summary = absl::StrJoin(render_summary(state, Terminal{}), "\n");
  EXPECT_THAT(summary, HasSubstr("test AUC       0.7123"));
  EXPECT_THAT(summary, HasSubstr("test accuracy  87.50 %"));
}

TEST(DashboardTest, ServersTablesFitTheTerminalToo) {
  RunState state = with_servers();
  for (int i = 1; i < 40; ++i) state.members.push_back(state.members[2]);
  state.members[1].telemetry.staleness->histogram = {600, 300, 100, 0, 120, 80};
  for (int rows = 2; rows <= 60; ++rows) {
    const Terminal terminal{.interactive = true, .columns = 60, .rows = rows};
    const auto lines = render_dashboard(state, terminal);
    EXPECT_LT(lines.size(), static_cast<std::size_t>(rows));
    for (const std::string& line : lines) EXPECT_LT(display_width(line), 60);
  }
}

TEST(DashboardTest, NoLineIsWiderThanTheTerminal) {
  for (int columns = 20; columns < 120; columns += 7) {
    const Terminal terminal{.interactive = true, .color = true, .unicode = true, .columns = columns};
    for (const std::string& line : render_dashboard(running(), terminal))
      EXPECT_LT(display_width(line), columns);
  }
}

TEST(DashboardTest, ManyMembersAreSummed) {
  RunState state = running();
  state.members.resize(100);
  EXPECT_LE(render_dashboard(state, Terminal{}).size(), kMaxMemberLines + 10u);
}

// A frame higher than the screen would smear: its upper lines scroll away and can't be drawn over.
TEST(DashboardTest, TheViewIsNeverHigherThanTheTerminal) {
  RunState state = running();
  state.members.resize(100);
  for (int rows = 2; rows <= 50; ++rows) {
    const Terminal terminal{.interactive = true, .columns = 80, .rows = rows};
    const auto lines = render_dashboard(state, terminal);
    EXPECT_LT(lines.size(), static_cast<std::size_t>(rows));
    EXPECT_THAT(lines[0], HasSubstr("digits  Running")) << rows;
    EXPECT_THAT(lines.back(), Not(HasSubstr("MEMBER"))) << rows << " rows: a head without members";
    EXPECT_NE(lines.back(), "") << rows;
  }
  const Terminal high{.interactive = true, .columns = 80, .rows = 60};
  EXPECT_EQ(render_dashboard(state, high).back(), "... and 76 members more");
}

TEST(DashboardTest, ANarrowTerminalLeavesOutColumnsAndKeepsWhatTellsAStraggler) {
  RunState state = running();
  for (api::MemberStatus& m : state.members) {
    m.index = 10;
    m.pid = 123456;
    m.phase = "evaluating";
    m.step = 1234567;
    m.telemetry.input_ms = m.telemetry.transfer_ms = m.telemetry.update_ms = 1234.5;
  }
  const auto header = [&](int columns) -> std::string {
    const Terminal terminal{.interactive = true, .columns = columns, .rows = 24};
    for (const std::string& line : render_dashboard(state, terminal))
      if (line.rfind("MEMBER", 0) == 0) return line;
    return "none";
  };
  EXPECT_THAT(header(200), HasSubstr("  PID  "));
  for (const int columns : {80, 60}) {
    EXPECT_THAT(header(columns), AllOf(HasSubstr("STEP"), HasSubstr("WAIT"), HasSubstr("TOTAL ms")))
        << columns;
    EXPECT_THAT(header(columns), Not(HasSubstr("PID"))) << columns;
  }
  EXPECT_THAT(header(80), HasSubstr("PHASE"));
  for (int columns = 20; columns < 60; ++columns) {
    EXPECT_THAT(header(columns), EndsWith("  TOTAL ms")) << columns;
    EXPECT_EQ(header(columns).find("  WAIT") != std::string::npos, columns >= 26) << columns;
  }
}

TEST(DashboardTest, NoNumberIsCut) {
  RunState state = running();
  state.name = "a-run-with-quite-a-long-name-of-its-own";
  const auto text = [&](int columns) {
    const Terminal terminal{.interactive = true, .columns = columns, .rows = 24};
    return absl::StrJoin(render_dashboard(state, terminal), "\n");
  };
  EXPECT_THAT(text(80),
              AllOf(HasSubstr("(target accuracy >= 0.9)"), HasSubstr("ETA 3.0 s"), HasSubstr("2.0 s")));
  EXPECT_THAT(text(60), AllOf(HasSubstr("samples/s"), HasSubstr("ETA 3.0 s"), HasSubstr("epoch 1.2")));
  EXPECT_THAT(text(40),
              AllOf(HasSubstr("loss 0.5000"), HasSubstr("accuracy 87.50 %"), HasSubstr("ETA 3.0 s")));
  for (int columns = 20; columns < 60; ++columns) {
    EXPECT_THAT(text(columns),
                AllOf(HasSubstr("  Running"), HasSubstr("step 50/200"), HasSubstr("loss 0.5000")))
        << columns;
  }
}

TEST(DashboardTest, OddNumbersDoNotBreakIt) {
  RunState state = running();
  state.progress.loss = std::numeric_limits<double>::quiet_NaN();
  state.progress.eta_seconds = std::numeric_limits<double>::infinity();
  state.progress.total_steps = 0;
  EXPECT_FALSE(render_dashboard(state, Terminal{}).empty());
  EXPECT_FALSE(render_summary(state, Terminal{}).empty());
}

TEST(DashboardTest, SummarySaysWhatBecameOfGradients) {
  RunState state = with_servers();
  state.gradients = StepGradients{.counted = 1, .workers = 2, .samples = 32, .batch = 64};
  state.members[1].telemetry.staleness->histogram = {600, 600};
  const std::string text = absl::StrJoin(render_summary(state, Terminal{}), "\n");
  EXPECT_THAT(text,
              HasSubstr("  gradients      each step counts the first gradient of 2: 32 of 64 samples (50 %); "
                        "3 of 1,203 gradients (<1 %) came too late and were dropped\n"));
  EXPECT_THAT(text, HasSubstr("  staleness      0: 50 %, 1: 50 % of 1,200 gradients; mean 1.25, most 5\n"));
  const std::string of_others = absl::StrJoin(render_summary(running(), Terminal{}), "\n");
  EXPECT_THAT(of_others, AllOf(Not(HasSubstr("gradients")), Not(HasSubstr("staleness"))));
}

TEST(DashboardTest, SummarySaysWhereThingsAre) {
  RunState state = running();
  state.phase = "Succeeded";
  state.target_seconds = 12;
  state.model = "/m/model.safetensors";
  state.bytes_exchanged = 1024;
  state.device = "NVIDIA H200";
  state.folder = "/f";
  const std::string text = absl::StrJoin(render_summary(state, Terminal{}), "\n");
  for (const char* expected : {"accuracy >= 0.9 after 12.0 s", "computed on      NVIDIA H200\n",
                               "/m/model.safetensors", "/f/logs", "goodput", "bytes exchanged"}) {
    EXPECT_NE(text.find(expected), std::string::npos) << expected;
  }
}

TEST(DashboardTest, ARunThatNeverBeganHasNoNumbers) {
  RunState state;
  state.name = "digits";
  state.phase = "Failed";
  state.reason = "MemberFailed";
  state.target = "accuracy >= 0.9";
  state.elapsed_seconds = 0.5;
  state.folder = "/f";
  EXPECT_EQ(absl::StrJoin(render_summary(state, Terminal{}), "\n"),
            "digits  Failed (MemberFailed)\n  time  500 ms\n  logs  /f/logs");
}

TEST(DashboardTest, TheLastStepHasNoTimeToGo) {
  RunState state = running();
  state.progress.step = state.progress.total_steps;
  state.progress.samples_per_second = 0;
  EXPECT_EQ(render_progress_line(state),
            "step 200/200  epoch 1.25  loss 0.5000  accuracy 87.50 %  (target accuracy >= 0.9)");
}

TEST(DashboardTest, ALineOfProgressEndsWithItsLastWord) {
  EXPECT_EQ(render_progress_line({.progress = {.step = 3, .total_steps = 9, .epoch = 0.5}}),
            "step 3/9  epoch 0.50");
  EXPECT_EQ(render_progress_line({.progress = {.step = 3, .total_steps = 9, .epoch = 0.5, .loss = 0.25}}),
            "step 3/9  epoch 0.50  loss 0.2500");
}

// Frames are drawn over by their lines: none may wrap, or hold a newline.
TEST(DashboardTest, WhatStrangersSaidIsVisibleBeforeItIsFitted) {
  const Terminal terminal{.interactive = true, .color = false, .unicode = false, .columns = 40, .rows = 30};
  const std::string bad = "a\x1b[31m\x1b[2J\n" + std::string(12, '\x07');
  RunState state{.name = bad, .phase = "Running", .progress = {.step = 1, .total_steps = 2}, .target = bad};
  state.progress.loss = 1;
  state.members.push_back({.host = bad, .phase = "b\x1b[31m\n"});
  const auto lines = render_dashboard(state, terminal);
  bool seen = false;
  for (const std::string& line : lines) {
    EXPECT_EQ(line.find_first_of("\x1b\n\x07"), std::string::npos) << line;
    EXPECT_LE(line.size(), 39U) << line;
    seen = seen || line.starts_with("a\\x1b[31m\\x1b[2J \\x07");
  }
  EXPECT_TRUE(seen);
}

TEST(FrameTest, RedrawsInPlace) {
  Frame frame;
  EXPECT_EQ(frame.draw({"a", "b"}), "\r\x1b[2Ka\n\r\x1b[2Kb\n");
  EXPECT_EQ(frame.draw({"c"}), "\x1b[2A\r\x1b[2Kc\n\r\x1b[2K\n\x1b[1A");
  EXPECT_EQ(frame.print_above({"note"}), "\x1b[1A\r\x1b[Jnote\n");
}

}  // namespace
}  // namespace paceline::cli

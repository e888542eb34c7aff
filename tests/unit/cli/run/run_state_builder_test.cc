#include "cli/run/run_state_builder.h"

#include <gtest/gtest.h>

namespace paceline::cli {
namespace {

using coordinator::StepRecord;
using std::chrono::milliseconds;

TEST(MeanRate, IsThatOfRankZerosClock) {
  const StepRecord first{.step = 100, .since_start = milliseconds(500)};
  const StepRecord last{.step = 300, .since_start = milliseconds(2500)};
  EXPECT_DOUBLE_EQ(mean_rate(first, last, 64).value(), 200 * 64 / 2.0);
  EXPECT_FALSE(mean_rate(first, first, 64).has_value());
  EXPECT_FALSE(mean_rate(last, first, 64).has_value());
}

TEST(ApplyReport, MembersThatNeverCameArePending) {
  coordinator::Report report;
  report.members.resize(3);
  report.members[1] = {
      .index = 1, .attached = true, .member_id = "uid-1", .phase = coordinator::Phase::kTraining};
  report.members[2] = {.index = 2, .member_id = "uid-2"};
  RunState state;
  apply_report(report, state);
  ASSERT_EQ(state.members.size(), 3u);
  EXPECT_EQ(state.members[0].phase, "pending");
  EXPECT_EQ(state.members[1].phase, "training");
  EXPECT_EQ(state.members[2].phase, "gone");
  EXPECT_EQ(member_name(state.members[1].role, state.members[1].index), "worker-1");
}

TEST(ApplyReport, ServersAndTheirWorkersTell) {
  coordinator::Report report;
  report.members.resize(2);
  report.members[0].lost = true;
  report.members[0].telemetry.staleness = StalenessTelemetry{.applied = 5, .histogram = {2, 3}};
  report.members[1].role = Role::kServer;
  report.members[1].telemetry.server = ServerTelemetry{.load = 0.5, .queue = 3};
  report.last_evaluation = coordinator::EvaluationRecord{.loss = 0.5, .accuracy = 0.75, .auc = 0.7125};
  RunState state;
  apply_report(report, state);
  EXPECT_EQ(state.members[0].phase, "lost");
  EXPECT_EQ(state.members[1].role, Role::kServer);
  for (const std::size_t i : {0, 1}) EXPECT_EQ(state.members[i].telemetry, report.members[i].telemetry);
  EXPECT_EQ(state.progress.test_auc, 0.7125);
}

TEST(ApplyStatus, AStoppedRunHasNotFailed) {
  RunState state;
  apply_status({.phase = api::Phase::kFailed, .reason = "Stopped"}, state);
  EXPECT_EQ(state.phase, "Stopped");
  EXPECT_TRUE(is_finished(state));
  apply_status({.phase = api::Phase::kFailed, .reason = "MemberKilled"}, state);
  EXPECT_EQ(state.phase, "Failed");
}

TEST(ApplyStatus, WhatHasEndedHasNoTimeToGo) {
  RunState state;
  state.progress.eta_seconds = 12;
  apply_status({.phase = api::Phase::kRunning, .progress = {.dropped_samples = 7}}, state);
  EXPECT_EQ(state.progress.dropped_samples, 7) << "of all members that the job has had";
  EXPECT_TRUE(state.progress.eta_seconds.has_value());
  apply_status({.phase = api::Phase::kSucceeded}, state);
  EXPECT_FALSE(state.progress.eta_seconds.has_value());
}

TEST(ApplyStatus, NoMemberOfARunThatHasEndedLives) {
  RunState state;
  state.members.resize(3);
  state.members[0].phase = "training";
  state.members[1].phase = "left";
  state.members[2].phase = "lost";
  apply_status({.phase = api::Phase::kSucceeded}, state);
  EXPECT_EQ(state.members[0].phase, "gone");
  EXPECT_EQ(state.members[1].phase, "left");
  EXPECT_EQ(state.members[2].phase, "lost");
}

TEST(ApplyStatus, PodKnowsBetterThanTheProcessBesideAProgram) {
  const auto phases = [](api::Phase job) {
    const std::vector<std::string> pods = {"Running", "Succeeded", "Failed"};
    RunState state;
    api::Status status{.phase = job};
    for (const std::string& pod : pods) {
      state.members.push_back({.pod = "of-" + pod, .phase = "gone"});
      status.members.push_back({.pod = "of-" + pod, .phase = pod});
    }
    state.members.push_back({.pod = "of-Running", .phase = "training"});
    apply_status(status, state);
    std::vector<std::string> told;
    for (const api::MemberStatus& member : state.members) told.push_back(member.phase);
    return told;
  };
  EXPECT_EQ(phases(api::Phase::kRunning), (std::vector<std::string>{"silent", "left", "gone", "training"}));
  EXPECT_EQ(phases(api::Phase::kSucceeded), (std::vector<std::string>{"gone", "left", "gone", "gone"}));
}

TEST(EvaluatorNote, IsOfASuccessWhoseEvaluatorToldOfNoCheckpointOrNotOfTheLast) {
  api::Spec spec;
  coordinator::Report report;
  RunState state;
  state.name = "r";
  state.phase = "Succeeded";
  state.checkpoint = "checkpoints/step-000000030";
  EXPECT_EQ(evaluator_note(spec, report, state, " --state-dir s"), "") << "there is no evaluator";
  spec.replica_specs.evaluator.emplace();
  const std::string none =
      "the evaluator has evaluated no checkpoint: `paceline logs r evaluator-0 --state-dir s` says what it "
      "looked for";
  EXPECT_EQ(evaluator_note(spec, report, state, " --state-dir s"), none);
  report.last_evaluation = coordinator::EvaluationRecord{.step = 10};
  EXPECT_EQ(evaluator_note(spec, report, state, " --state-dir s"), none) << "those who train did";
  state.phase = "Failed";
  EXPECT_EQ(evaluator_note(spec, report, state, " --state-dir s"), "") << "there is worse to tell";
  state.phase = "Succeeded";
  report.last_observed = 10;
  EXPECT_EQ(evaluator_note(spec, report, state, " --state-dir s"),
            "the evaluator has not evaluated the last checkpoint, of step 30; its last one is of step 10: "
            "`paceline logs r evaluator-0 --state-dir s` may say why");
  report.last_observed = 30;
  EXPECT_EQ(evaluator_note(spec, report, state, " --state-dir s"), "")
      << "of a step that was evaluated before";
}

TEST(RunStateBuilder, TimesOfAResumedRunGoOnFromWhatItHasTaken) {
  coordinator::Report report;
  report.elapsed = std::chrono::seconds(3);
  report.first_step_after = std::chrono::seconds(1);
  RunState state;
  apply_report(report, state, 10);
  apply_report(report, state, 10);
  EXPECT_EQ(state.elapsed_seconds, 13);
  EXPECT_EQ(state.first_step_seconds, 11);
  state.first_step_seconds = 2;  // it took its first step in an earlier session
  apply_report(report, state, 10);
  EXPECT_EQ(state.first_step_seconds, 2);
}

TEST(RunStateBuilder, SumsOfAResumedRunGoOn) {
  const api::Progress sums{.step = 100, .dropped_samples = 7, .goodput = 0.8, .goodput_seconds = 20};
  api::Progress earlier = sums;
  earlier.loss = 0.5;
  earlier.samples_per_second = 1000;
  EXPECT_EQ(progress_to_go_on(earlier), sums);
}

TEST(RunStateBuilder, PathsThatGoWithADeletedRunAreNotNamed) {
  RunState state;
  state.folder = "/runs/a";
  state.model = "/runs/a/model/model.safetensors";
  state.checkpoint = "/elsewhere/step-000000005";
  const RunState left = without_own_paths(state);
  EXPECT_EQ(left.folder + left.model, "");
  EXPECT_EQ(left.checkpoint, state.checkpoint);
}

TEST(RunStateBuilder, ASessionThatTookNoStepKeepsWhatTheRunHas) {
  RunState earlier, state;
  earlier.progress.loss = 0.5;
  earlier.progress.test_accuracy = 0.8;
  earlier.progress.samples_per_second = 1000;
  earlier.progress.goodput = 0.9;
  earlier.checkpoint = "c";
  earlier.model = "m";
  earlier.device = "processors";
  earlier.progress.step = 60;
  earlier.samples = 600;
  earlier.progress.epoch = 3;
  earlier.target_reached = true;
  earlier.target_seconds = 4;
  state.progress.test_accuracy = 0.9;  // evaluated again, on another device
  state.device = "NVIDIA H200";
  keep_earlier(earlier, state);
  EXPECT_EQ(state.progress.loss, 0.5);
  EXPECT_EQ(state.progress.test_accuracy, 0.9);
  EXPECT_FALSE(state.progress.test_auc.has_value());
  EXPECT_EQ(state.progress.samples_per_second, 1000);
  EXPECT_EQ(state.progress.goodput, 0.9);
  EXPECT_EQ(state.checkpoint + state.model + state.device, "cmprocessors");
  EXPECT_TRUE(state.target_reached);
  EXPECT_EQ(state.target_seconds, 4);
  EXPECT_EQ(state.progress.step, 60);
  EXPECT_EQ(state.samples, 600);
  EXPECT_EQ(state.progress.epoch, 3);
}

}  // namespace
}  // namespace paceline::cli

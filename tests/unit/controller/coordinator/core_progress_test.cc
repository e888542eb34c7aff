#include "controller/coordinator/core_progress.h"

#include <gtest/gtest.h>

namespace paceline::coordinator {
namespace {

using std::chrono::milliseconds;

v1::Heartbeat beat(Step step, std::int64_t samples, std::int64_t steps, std::int64_t step_ms) {
  v1::Heartbeat beat;
  beat.set_step(step);
  beat.set_samples(samples);
  beat.set_total_steps(1000);
  beat.set_steps(steps);
  beat.mutable_times()->set_step_ns(steps * step_ms * 1'000'000);
  return beat;
}

Report report_at(const JobProgress& progress, TimePoint now) {
  Report report;
  progress.fill(report, now);
  return report;
}

TEST(JobProgressTest, RatesAreThoseOfTheLastSeconds) {
  JobProgress progress{TimePoint{}};
  Effects effects;
  TimePoint now{};
  Step step = 0;
  const auto run = [&](int beats, int steps_per_beat) {
    for (int i = 0; i < beats; ++i) {
      now += milliseconds(200);
      step += steps_per_beat;
      const v1::Heartbeat message = beat(step, step * 64, steps_per_beat, 1);
      progress.rank_zero(message, now);
      progress.records_of_rank_zero(message, now, effects);
    }
  };
  run(50, 2);  // 10 steps/s
  EXPECT_NEAR(report_at(progress, now).samples_per_second, 640, 1);
  run(50, 8);  // 40 steps/s, long enough to forget the first
  const Report report = report_at(progress, now);
  EXPECT_NEAR(report.samples_per_second, 2560, 1);
  ASSERT_TRUE(report.eta.has_value());
  EXPECT_NEAR(std::chrono::duration<double>(*report.eta).count(), (1000 - 500) / 40.0, 0.1);
  EXPECT_NEAR(report.goodput, 0.5 / 20, 1e-3);  // 500 steps of 1 ms in 20 s
}

TEST(JobProgressTest, StepsOfTheTimeBeforeItBeganAddNothingToGoodput) {
  JobProgress progress{TimePoint{milliseconds(300'000)}, {.step = 3000, .share = 0.5, .seconds = 600}};
  Effects effects;
  const TimePoint now{milliseconds(301'000)};
  progress.records_of_rank_zero(beat(6000, 0, 3000, 100), now, effects);
  EXPECT_DOUBLE_EQ(report_at(progress, now).goodput, 301.0 / 601);
}

TEST(JobProgressTest, TimeGoesOnWithAnotherRankZero) {
  JobProgress progress{TimePoint{}};
  Effects effects;
  const auto say = [&](Step step, int age_ms, int ms) {
    v1::Heartbeat message = beat(step, step * 64, 1, 1);
    v1::StepRecord& record = *message.add_records();
    record.set_step(step);
    record.set_since_start_ns(std::int64_t{age_ms} * 1'000'000);
    progress.rank_zero(message, TimePoint{milliseconds(ms)});
    progress.records_of_rank_zero(message, TimePoint{milliseconds(ms)}, effects);
  };
  say(10, 900, 1000);
  progress.new_view();
  say(11, 1000, 1100);
  progress.new_view(true);
  say(12, 50, 1400);  // it has just begun
  say(13, 150, 1500);
  std::vector<std::int64_t> ages;
  for (const StepRecord& record : effects.steps) ages.push_back(record.since_start / milliseconds(1));
  EXPECT_EQ(ages, (std::vector<std::int64_t>{900, 1000, 1300, 1400}));
}

// Rank 0 says 0 until it has read the checkpoint.
TEST(JobProgressTest, TheStepsOfACheckpointAreNoneOfThisRuns) {
  JobProgress progress{TimePoint{}};
  Effects effects;
  const auto say = [&](Step step, std::int64_t steps, int ms) {
    const v1::Heartbeat message = beat(step, step * 64, steps, 1);
    progress.rank_zero(message, TimePoint{milliseconds(ms)});
    progress.records_of_rank_zero(message, TimePoint{milliseconds(ms)}, effects);
  };
  say(0, 0, 100);
  say(500, 10, 300);  // it has gone on from step 490
  EXPECT_NEAR(report_at(progress, {}).samples_per_second, 10 * 64 / 0.2, 1);
  say(520, 20, 700);
  EXPECT_NEAR(report_at(progress, {}).samples_per_second, 30 * 64 / 0.6, 1);

  progress.new_view();
  say(0, 0, 1000);
  say(1000, 0, 1100);  // of a training that was done already
  EXPECT_EQ(report_at(progress, {}).samples_per_second, 0);
}

// A job of a few steps tells of all of them with its last heartbeat.
TEST(JobProgressTest, NorAreTheyWhereItStoodAtTheBeginningForLong) {
  JobProgress progress{TimePoint{}};
  for (int i = 0; i < 5; ++i) progress.rank_zero(beat(0, 0, 0, 0), TimePoint{milliseconds(200 * i)});
  progress.rank_zero(beat(502, 502 * 64, 2, 1), TimePoint{milliseconds(1000)});
  EXPECT_NEAR(report_at(progress, TimePoint{milliseconds(1000)}).samples_per_second, 2 * 64 / 0.2, 1);
}

TEST(JobProgressTest, TheFirstStepWasBeforeItWasHeardOf) {
  const auto first_after = [](std::int64_t evaluated_ns) {
    JobProgress progress{TimePoint{milliseconds(1000)}};
    Effects effects;
    v1::Heartbeat message = beat(20, 20 * 64, 20, 5);
    for (int step = 1; step <= 20; ++step) {
      v1::StepRecord& record = *message.add_records();
      record.set_step(step);
      record.set_since_start_ns((30 + step * 5) * 1'000'000);
    }
    if (evaluated_ns > 0) message.add_evaluations()->set_since_start_ns(evaluated_ns);
    progress.records_of_rank_zero(message, TimePoint{milliseconds(1281)}, effects);
    return report_at(progress, TimePoint{milliseconds(1282)}).first_step_after;
  };
  EXPECT_EQ(first_after(0), milliseconds(281 - 19 * 5));
  EXPECT_EQ(first_after(150'000'000), milliseconds(281 - 19 * 5 - 20)) << "an evaluation came after the last";
  EXPECT_EQ(first_after(1'000'000'000'000'000), Duration::zero()) << "a clock that lies";

  JobProgress progress{TimePoint{}};
  Effects effects;
  progress.records_of_rank_zero(beat(2, 2, 2, 1), TimePoint{milliseconds(70)}, effects);
  EXPECT_EQ(report_at(progress, TimePoint{}).first_step_after, milliseconds(70)) << "steps without records";
}

TEST(JobProgressTest, TimeStandsStillAtTheEnd) {
  JobProgress progress{TimePoint{}};
  progress.end(TimePoint{milliseconds(700)});
  progress.end(TimePoint{milliseconds(900)});
  EXPECT_EQ(report_at(progress, TimePoint{milliseconds(5000)}).elapsed, milliseconds(700));
}

TEST(JobProgressTest, AStepThatIsTakenAgainGivesNoSecondRecord) {
  JobProgress progress{TimePoint{}};
  Effects effects;
  v1::Heartbeat message = beat(3, 3, 3, 1);
  for (int step = 1; step <= 3; ++step) message.add_records()->set_step(step);
  message.add_evaluations()->set_step(3);
  progress.records_of_rank_zero(message, TimePoint{milliseconds(1)}, effects);
  progress.records_of_rank_zero(message, TimePoint{milliseconds(2)}, effects);
  EXPECT_EQ(effects.steps.size(), 3u);
  EXPECT_EQ(effects.evaluations.size(), 1u);
}

TEST(JobProgressTest, AnEvaluationHasAnAucWhereItsModelHasOne) {
  JobProgress progress{TimePoint{}};
  Effects effects;
  v1::Heartbeat message = beat(3, 3, 3, 1);
  message.add_evaluations()->set_step(2);
  v1::EvaluationRecord& second = *message.add_evaluations();
  second.set_step(3);
  second.set_auc(0.75);
  progress.records_of_rank_zero(message, TimePoint{}, effects);
  ASSERT_EQ(effects.evaluations.size(), 2u);
  EXPECT_FALSE(effects.evaluations[0].auc.has_value());
  EXPECT_EQ(effects.evaluations[1].auc, 0.75);
  EXPECT_EQ(report_at(progress, TimePoint{}).last_evaluation->auc, 0.75);
}

v1::Heartbeat evaluation(Step step, bool target_reached) {
  v1::Heartbeat message;
  v1::EvaluationRecord& record = *message.add_evaluations();
  record.set_step(step);
  record.set_target_reached(target_reached);
  return message;
}

TEST(JobProgressTest, AnEvaluationSaysWhoseItIs) {
  JobProgress progress{TimePoint{}};
  Effects effects;
  progress.records_of_rank_zero(evaluation(10, false), TimePoint{}, effects);
  progress.evaluations_of_observer(evaluation(20, false), "evaluator-0", effects);
  ASSERT_EQ(effects.evaluations.size(), 2u);
  EXPECT_EQ(effects.evaluations[0].observer, "");
  EXPECT_EQ(effects.evaluations[1].observer, "evaluator-0");
}

// The evaluator's heartbeat may be the first about a checkpoint of the step that ends the training.
TEST(JobProgressTest, ATargetThatIsReachedIsToldThoughTheEvaluatorWasFaster) {
  JobProgress progress{TimePoint{}};
  Effects effects;
  progress.evaluations_of_observer(evaluation(10, false), "evaluator-0", effects);
  progress.records_of_rank_zero(evaluation(10, true), TimePoint{}, effects);
  ASSERT_EQ(effects.evaluations.size(), 2u);
  EXPECT_TRUE(effects.evaluations[1].target_reached);
  EXPECT_TRUE(report_at(progress, TimePoint{}).last_evaluation->target_reached);
  progress.records_of_rank_zero(evaluation(10, true), TimePoint{}, effects);
  EXPECT_EQ(effects.evaluations.size(), 2u) << "told again after a re-attach";
}

// Of a checkpoint of the training's last step, which the chief evaluated, the evaluator's evaluation is no
// event.
TEST(JobProgressTest, WhatTheEvaluatorEvaluatedIsKnownThoughOthersDidBefore) {
  JobProgress progress{TimePoint{}};
  Effects effects;
  progress.records_of_rank_zero(evaluation(10, false), TimePoint{}, effects);
  EXPECT_FALSE(report_at(progress, TimePoint{}).last_observed.has_value());
  progress.evaluations_of_observer(evaluation(10, false), "evaluator-0", effects);
  EXPECT_EQ(effects.evaluations.size(), 1u);
  EXPECT_EQ(report_at(progress, TimePoint{}).last_observed, 10);
}

TEST(JobProgressTest, WeightsAreComparedStepByStep) {
  JobProgress progress{TimePoint{}};
  EXPECT_TRUE(progress.weights(0, 3, 10, 1).empty());
  EXPECT_TRUE(progress.weights(1, 3, 11, 2).empty());  // another step: nothing to compare
  EXPECT_TRUE(progress.weights(1, 3, 10, 1).empty());
  EXPECT_EQ(report_at(progress, TimePoint{}).weights_checked_step, 0);
  EXPECT_TRUE(progress.weights(2, 3, 10, 1).empty());
  EXPECT_EQ(report_at(progress, TimePoint{}).weights_checked_step, 10);
  EXPECT_EQ(progress.weights(2, 3, 11, 3),
            std::vector<int>{2});  // a draw: the one that differs from the lowest rank
  EXPECT_EQ(progress.weights(0, 3, 11, 3), std::vector<int>{1});  // the majority has spoken
}

TEST(JobProgressTest, OldStepsAreForgotten) {
  JobProgress progress{TimePoint{}};
  for (Step step = 1; step <= 1000; ++step) EXPECT_TRUE(progress.weights(0, 2, step, 7).empty());
  EXPECT_TRUE(progress.weights(1, 2, 5, 8).empty());  // too old to be compared
  EXPECT_FALSE(progress.weights(1, 2, 1000, 8).empty());
}

}  // namespace
}  // namespace paceline::coordinator

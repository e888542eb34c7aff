#include "runtime/member/progress.h"

#include <gtest/gtest.h>

#include <set>
#include <thread>
#include <vector>

#include "tests/support/fake_clock.h"

namespace paceline::member {
namespace {

AppliedStep step(Step number, bool has_loss = false) {
  AppliedStep applied;
  applied.step = number;
  applied.samples = number * 64;
  applied.times = {1, 2, 3, 4, 5, 6, 21};
  applied.bytes_sent = static_cast<std::uint64_t>(number) * 1000;
  applied.has_loss = has_loss;
  applied.loss = 1.0 / static_cast<double>(number);
  applied.since_start_ns = number;
  return applied;
}

TEST(ProgressTest, AHeartbeatTellsThePartOfTheStepAndItsAge) {
  const struct {
    StepPart part;
    v1::StepPart told;
  } cases[] = {{StepPart::kInput, v1::PART_INPUT},   {StepPart::kCompute, v1::PART_COMPUTE},
               {StepPart::kWait, v1::PART_EXCHANGE}, {StepPart::kTransfer, v1::PART_EXCHANGE},
               {StepPart::kUpdate, v1::PART_UPDATE}, {StepPart::kCheckpoint, v1::PART_NONE},
               {StepPart::kNone, v1::PART_NONE}};
  FakeClock clock;
  Progress progress(&clock);
  StepClock steps(clock, &progress.current_part());
  v1::Heartbeat beat;
  const auto pass = [&](std::chrono::seconds time) {
    for (std::chrono::seconds gone{}; gone < time; ++gone) {
      clock.advance(std::chrono::seconds(1));
      progress.collect(&beat);
    }
  };
  pass(std::chrono::seconds(1));
  for (const auto& c : cases) {
    steps.begin();
    const auto part = steps.part(c.part);
    pass(std::chrono::seconds(11));
    EXPECT_EQ(beat.part(), c.told);
    const std::int64_t age = c.told == v1::PART_NONE ? 0 : 11'000'000'000;
    EXPECT_EQ(beat.part_ns(), age);
    clock.advance(std::chrono::seconds(1));
    progress.refresh(&beat);
    EXPECT_EQ(beat.part_ns(), age == 0 ? 0 : age + 1'000'000'000)
        << "it is of the moment when it is sent again";
  }
}

TEST(ProgressTest, APartDoesNotLastWhileTheProcessStandsStill) {
  FakeClock clock;
  Progress progress(&clock);
  StepClock steps(clock, &progress.current_part());
  v1::Heartbeat beat;
  progress.collect(&beat);
  steps.begin();
  const auto part = steps.part(StepPart::kCompute);
  clock.advance(Progress::kStandstill);
  progress.collect(&beat);
  EXPECT_EQ(beat.part_ns(), Progress::kStandstill.count());
  clock.advance(std::chrono::minutes(1));
  progress.collect(&beat);
  EXPECT_EQ(beat.part_ns(), 0);
  clock.advance(std::chrono::seconds(1));
  progress.collect(&beat);
  EXPECT_EQ(beat.part_ns(), 1'000'000'000);
}

TEST(ProgressTest, AHeartbeatSaysWhatHappenedSinceTheLast) {
  Progress progress;
  progress.set_generation(Generation{3});
  progress.set_phase(v1::TRAINING);
  progress.set_plan(1000, 60000, 12345);
  progress.set_weights_hash(2, 0xabcdef);
  progress.step_applied(step(1, true));
  progress.step_applied(step(2, true));
  progress.evaluated({1, 0.6, 0.8, 100, 5, false, 0.75});
  progress.evaluated({2, 0.5, 0.9, 100, 7, true});
  v1::Heartbeat beat;
  progress.collect(&beat);
  EXPECT_EQ(beat.generation(), 3u);
  EXPECT_EQ(beat.phase(), v1::TRAINING);
  EXPECT_EQ(beat.step(), 2);
  EXPECT_EQ(beat.samples(), 128);
  EXPECT_EQ(beat.steps(), 2);
  EXPECT_EQ(beat.total_steps(), 1000);
  EXPECT_EQ(beat.train_samples(), 60000);
  EXPECT_EQ(beat.parameter_count(), 12345u);
  EXPECT_EQ(beat.weights_hash(), 0xabcdefu);
  EXPECT_EQ(beat.weights_hash_step(), 2);
  EXPECT_EQ(beat.bytes_sent(), 2000u);
  EXPECT_EQ(beat.times().wait_ns(), 6);
  EXPECT_EQ(beat.times().step_ns(), 42);
  ASSERT_EQ(beat.records_size(), 2);
  EXPECT_EQ(beat.records(1).step(), 2);
  EXPECT_EQ(beat.records(1).loss(), 0.5);
  ASSERT_EQ(beat.step_times_size(), 2);
  ASSERT_EQ(beat.evaluations_size(), 2);
  EXPECT_FALSE(beat.evaluations(0).target_reached());
  EXPECT_EQ(beat.evaluations(0).auc(), 0.75);
  EXPECT_TRUE(beat.evaluations(1).target_reached());
  EXPECT_FALSE(beat.evaluations(1).has_auc());

  progress.step_applied(step(3));
  progress.collect(&beat);
  EXPECT_EQ(beat.steps(), 1);
  EXPECT_EQ(beat.times().step_ns(), 21);
  EXPECT_EQ(beat.records_size(), 0);  // not rank 0
  EXPECT_EQ(beat.step_times_size(), 1);
  EXPECT_EQ(beat.evaluations_size(), 0);
}

TEST(ProgressTest, SamplesThatAreLeftOutAddUp) {
  Progress progress;
  v1::Heartbeat beat;
  for (Step number = 1; number <= 3; ++number) {
    AppliedStep partial = step(number);
    partial.left_out = number;
    partial.times.left_out = 7;
    progress.step_applied(partial);
    if (number == 2) progress.collect(&beat);
  }
  progress.collect(&beat);
  EXPECT_EQ(beat.dropped_samples(), 1 + 2 + 3);
  ASSERT_EQ(beat.step_times_size(), 1);
  EXPECT_EQ(beat.step_times(0).left_out_ns(), 7);
  EXPECT_EQ(beat.step_times(0).compute_ns(), 2);
}

TEST(ProgressTest, ARefreshedHeartbeatBringsWhatItBroughtWithTheValuesOfNow) {
  Progress progress;
  progress.set_phase(v1::TRAINING);
  progress.step_applied(step(1, true));
  v1::Heartbeat beat, next;
  progress.collect(&beat);
  progress.step_applied(step(2, true));
  progress.set_phase(v1::CHECKPOINTING);
  progress.refresh(&beat);
  EXPECT_EQ(beat.step(), 2);
  EXPECT_EQ(beat.phase(), v1::CHECKPOINTING);
  EXPECT_EQ(beat.steps(), 1);
  EXPECT_EQ(beat.times().step_ns(), 21);
  ASSERT_EQ(beat.records_size(), 1);
  EXPECT_EQ(beat.records(0).step(), 1);
  progress.collect(&next);
  EXPECT_EQ(next.steps(), 1);
  ASSERT_EQ(next.records_size(), 1);
  EXPECT_EQ(next.records(0).step(), 2);
}

TEST(ProgressTest, ManyStepsAreThinnedEvenlyAndTheNewestStays) {
  for (const int count : {1, 255, 256, 257, 512, 513, 1000, 4096}) {
    Progress progress;
    for (int i = 1; i <= count; ++i) progress.step_applied(step(i, true));
    v1::Heartbeat beat;
    progress.collect(&beat);
    EXPECT_LE(beat.records_size(), Progress::kMaxPerHeartbeat) << count;
    EXPECT_GE(beat.records_size(), std::min(count, Progress::kMaxPerHeartbeat / 2)) << count;
    EXPECT_EQ(beat.records(beat.records_size() - 1).step(), count);
    EXPECT_EQ(beat.step_times_size(), beat.step_time_steps_size());
    for (int i = 2; i < beat.records_size(); ++i) {
      EXPECT_EQ(beat.records(i).step() - beat.records(i - 1).step(),
                beat.records(1).step() - beat.records(0).step());
    }
    EXPECT_EQ(beat.steps(), count);
    EXPECT_EQ(progress.dropped(), 0u);
  }
}

TEST(ProgressTest, AFullRingDropsRecordsButNotSums) {
  Progress progress;
  const int count = static_cast<int>(Progress::kRingSteps) + 100;
  for (int i = 1; i <= count; ++i) progress.step_applied(step(i));
  EXPECT_EQ(progress.dropped(), 100u);
  v1::Heartbeat beat;
  progress.collect(&beat);
  EXPECT_EQ(beat.steps(), count);
  EXPECT_EQ(beat.times().step_ns(), 21 * count);
}

// The last evaluation of a job may be the one that reached its target.
TEST(ProgressTest, TheNewestEvaluationIsNeverDropped) {
  Progress progress;
  const int most = static_cast<int>(Progress::kWaitingEvaluations), count = most + 10;
  for (int i = 1; i <= count; ++i) progress.evaluated({.step = i, .target_reached = i == count});
  EXPECT_EQ(progress.dropped(), 10u);
  std::vector<v1::EvaluationRecord> told;
  while (progress.evaluations_wait()) {
    v1::Heartbeat beat;
    progress.collect(&beat);
    told.insert(told.end(), beat.evaluations().begin(), beat.evaluations().end());
  }
  ASSERT_EQ(told.size(), Progress::kWaitingEvaluations);
  for (int i = 1; i < most; ++i) EXPECT_EQ(told[static_cast<std::size_t>(i - 1)].step(), i);
  EXPECT_EQ(told.back().step(), count);
  EXPECT_TRUE(told.back().target_reached());
}

TEST(ProgressTest, EvaluationsThatAHeartbeatCannotCarryWaitForTheNext) {
  Progress progress;
  const int most = static_cast<int>(Progress::kMaxEvaluations), count = 2 * most + 10;
  for (int i = 1; i <= count; ++i) progress.evaluated({.step = i});
  EXPECT_EQ(progress.dropped(), 0u);
  v1::Heartbeat beat;
  for (const int size : {most, most, 10, 0}) {
    EXPECT_EQ(progress.evaluations_wait(), size > 0);
    progress.collect(&beat);
    EXPECT_EQ(beat.evaluations_size(), size);
  }
}

TEST(ProgressTest, TheRoundestOfferedHashIsTold) {
  Progress progress;
  v1::Heartbeat beat;
  for (Step step = 16; step <= 48; step += 16) progress.offer_weights_hash(step, 1);
  progress.collect(&beat);
  EXPECT_EQ(beat.weights_hash_step(), 32);
  progress.offer_weights_hash(64 + 16, 1);  // less round, but 32 was told
  progress.collect(&beat);
  EXPECT_EQ(beat.weights_hash_step(), 80);
  progress.offer_weights_hash(128, 1);
  progress.set_weights_hash(131, 1);  // must be told
  progress.collect(&beat);
  EXPECT_EQ(beat.weights_hash_step(), 131);
}

// Two members whose heartbeats come at different moments of a fast job still tell of the same steps.
TEST(ProgressTest, HeartbeatsAtDifferentMomentsTellOfTheSameSteps) {
  Progress members[2];
  std::set<Step> told[2];
  for (Step step = 16; step <= 40'000; step += 16) {
    for (int m = 0; m < 2; ++m) {
      members[m].offer_weights_hash(step, 1);
      if ((step / 16 + m * 13) % 25 != 0) continue;
      v1::Heartbeat beat;
      members[m].collect(&beat);
      told[m].insert(beat.weights_hash_step());
    }
  }
  int both = 0;
  for (const Step step : told[0]) both += told[1].contains(step) ? 1 : 0;
  EXPECT_GE(both, 50) << "of " << told[0].size() << " heartbeats";
}

// Values that belong together are seen together, and nothing is lost or counted twice, while both threads
// run.
TEST(ProgressTest, TwoThreadsAgree) {
  constexpr std::int64_t kSteps = 50000;
  Progress progress;
  std::int64_t steps = 0, time = 0, last_record = 0, records = 0;
  {
    std::jthread training([&] {
      for (std::int64_t i = 1; i <= kSteps; ++i) {
        progress.step_applied(step(i));
        progress.set_weights_hash(i, static_cast<std::uint64_t>(i) * 7);
      }
    });
    v1::Heartbeat beat;
    while (steps < kSteps) {
      progress.collect(&beat);
      steps += beat.steps();
      time += beat.times().step_ns();
      records += beat.step_times_size();
      ASSERT_EQ(beat.samples(), beat.step() * 64);
      ASSERT_EQ(static_cast<Step>(beat.bytes_sent()), beat.step() * 1000);
      ASSERT_EQ(beat.weights_hash(), static_cast<std::uint64_t>(beat.weights_hash_step()) * 7);
      ASSERT_EQ(beat.step(), steps);
      ASSERT_EQ(beat.times().step_ns(), beat.steps() * 21);
      for (const std::int64_t number : beat.step_time_steps()) {
        ASSERT_GT(number, last_record);
        ASSERT_LE(number, beat.step());
        last_record = number;
      }
    }
  }
  v1::Heartbeat rest;  // records of steps that the last heartbeat has counted already
  progress.collect(&rest);
  records += rest.step_times_size();
  EXPECT_EQ(rest.steps(), 0);
  EXPECT_EQ(steps, kSteps);
  EXPECT_EQ(time, kSteps * 21);
  EXPECT_GT(records, 0);
}

TEST(ProgressTest, HeartbeatThatIsToldAgainTellsOfNoViewBefore) {
  Progress progress;
  v1::Heartbeat beat;
  progress.set_generation(Generation{1});
  progress.set_view_begin({.step = 7});
  progress.collect(&beat);
  ASSERT_EQ(beat.view_begin().step(), 7);
  progress.set_generation(Generation{2});
  progress.refresh(&beat);
  EXPECT_EQ(beat.generation(), 2U);
  EXPECT_FALSE(beat.has_view_begin());
}

TEST(ProgressTest, ExtraIsCalledForEachHeartbeat) {
  Progress progress;
  std::int64_t applied = 0;
  progress.set_extra([&](v1::Heartbeat& beat) { beat.mutable_staleness()->set_applied(++applied); });
  v1::Heartbeat beat;
  progress.collect(&beat);
  EXPECT_EQ(beat.staleness().applied(), 1);
  progress.refresh(&beat);
  EXPECT_EQ(beat.staleness().applied(), 2);
  progress.set_device_extra([](v1::Heartbeat& beat) { beat.mutable_gpu()->set_name("H200"); });
  v1::Heartbeat both;
  progress.collect(&both);
  EXPECT_TRUE(both.has_staleness());
  EXPECT_EQ(both.gpu().name(), "H200");
  progress.set_device_extra(nullptr);
  progress.set_extra(nullptr);
  progress.collect(&beat);
  EXPECT_FALSE(beat.has_staleness());
}

}  // namespace
}  // namespace paceline::member

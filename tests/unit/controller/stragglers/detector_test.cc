#include "controller/stragglers/detector.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "base/rng.h"

namespace paceline::stragglers {
namespace {

constexpr std::uint64_t kSeed = 20;

// Members whose steps of 0.25 s have normal noise in their logs; everybody waits for the slowest.
class Job {
 public:
  explicit Job(int members, double sigma = 0.05, std::uint64_t seed = kSeed)
      : input_(members, 0.01),
        compute_(members, 0.25),
        transfer_(members, 0.02),
        work_(members, 0),
        sigma_(sigma),
        rng_(seed, 0) {
    std::vector<int> places(static_cast<std::size_t>(members));
    std::iota(places.begin(), places.end(), 0);
    detector_.begin_view(places);
  }

  void slow_down(int member, double factor) { compute_.at(member) *= factor; }
  void slow_input(int member, double seconds) { input_.at(member) = seconds; }
  void slow_transfer(int member, double seconds) { transfer_.at(member) = seconds; }
  void wait_in_transfer() { waits_in_transfer_ = true; }  // as NCCL's collectives do
  void tell_work(int member, double work) { work_.at(member) = work; }

  // How many it took until something was found, or is found no more; -1: `most` did not do.
  int run_until(int most, bool found) {
    for (int i = 1; i <= most; ++i) {
      step();
      if (detector_.findings().empty() != found) return i;
    }
    return -1;
  }
  void run(int steps) {
    for (int i = 0; i < steps; ++i) step();
  }
  Detector& detector() { return detector_; }
  const std::vector<Finding>& found() const { return detector_.findings(); }

 private:
  void step() {
    ++step_;
    std::vector<StepSample> samples;
    Duration longest{};
    for (std::size_t i = 0; i < compute_.size(); ++i) {
      const auto noisy = [&](double seconds) {
        return Duration(std::llround(1e9 * seconds * std::exp(sigma_ * rng_.normal())));
      };
      samples.push_back(
          {.step = step_, .input = noisy(input_[i]), .compute = noisy(compute_[i]), .work = work_[i]});
      samples.back().transfer = noisy(transfer_[i]);
      longest = std::max(longest, samples.back().input + samples.back().compute + samples.back().transfer);
    }
    for (std::size_t i = 0; i < samples.size(); ++i) {
      const Duration wait = longest - samples[i].input - samples[i].compute - samples[i].transfer;
      (waits_in_transfer_ ? samples[i].transfer : samples[i].wait) += wait;
      detector_.add(static_cast<int>(i), samples[i]);
    }
    detector_.advance();
  }

  Detector detector_{Settings{}};
  std::vector<double> input_, compute_, transfer_, work_;
  bool waits_in_transfer_ = false;
  double sigma_;
  Rng rng_;
  Step step_ = 0;
};

TEST(Detector, SlowMemberIsFoundAndNotThoseThatWait) {
  for (const int members : {2, 3, 4, 16, 100}) {
    SCOPED_TRACE(members);
    Job job(members);
    job.run(100);
    ASSERT_TRUE(job.found().empty());
    job.slow_down(1, 1.3);
    const int steps = job.run_until(32, true);
    EXPECT_GE(steps, 1);
    ASSERT_EQ(job.found().size(), 1U);
    const Finding& finding = job.found().front();
    EXPECT_EQ(finding.kind, FindingKind::kSlow);
    EXPECT_EQ(finding.place, 1);
    EXPECT_EQ(finding.part, Part::kCompute);
    EXPECT_NEAR(finding.factor, 1.3, 0.1);
    EXPECT_GE(finding.since, 100 - 1);
    EXPECT_GE(finding.steps, kLeastBlocks);
  }
}

TEST(Detector, MemberThatIsSlowFromTheStartIsFound) {
  Job job(4);
  job.slow_down(2, 1.5);
  EXPECT_GE(job.run_until(kWarmUp + 32, true), kLeastBlocks);
  EXPECT_EQ(job.found().front().place, 2);
}

TEST(Detector, OwnTimesAreKnownOnceThereAreEnoughBlocks) {
  Job job(3, 0.01);
  job.slow_down(2, 2);
  job.run(kWarmUp + kLeastBlocks - 1);
  EXPECT_TRUE(job.detector().own_times().empty());
  job.run(1);
  const std::vector<double> times = job.detector().own_times();
  ASSERT_EQ(times.size(), 3U);
  EXPECT_NEAR(times[0], 0.26, 0.01);
  EXPECT_NEAR(times[2], 0.51, 0.02);
}

TEST(Detector, BegunAnewKnowsNothing) {
  Job job(3);
  job.slow_down(1, 2);
  ASSERT_GE(job.run_until(64, true), 1);
  job.detector().begin_anew();
  job.detector().begin_view(std::vector<int>{0, 1, 2});
  EXPECT_TRUE(job.found().empty());
  EXPECT_FALSE(job.detector().knows());
  EXPECT_TRUE(job.detector().own_times().empty());
  EXPECT_GE(job.run_until(kWarmUp + 64, true), kLeastBlocks) << "it is slow yet";
}

// Shares that follow speed: the slow member's time is level, and for each sample it takes longer.
TEST(Detector, SlowMemberWithFewerSamplesIsNoStraggler) {
  Job job(4);
  for (int i = 0; i < 4; ++i) job.tell_work(i, i == 1 ? 40 : 80);
  job.run(400);
  EXPECT_TRUE(job.found().empty());
}

TEST(Detector, ReaderIsToldFromCompute) {
  Job job(4);
  job.run(50);
  job.slow_input(3, 0.15);
  ASSERT_GE(job.run_until(60, true), 1);
  EXPECT_EQ(job.found().front().place, 3);
  EXPECT_EQ(job.found().front().part, Part::kInput);
}

TEST(Detector, MemberThatMovesBytesSlowlyIsFound) {
  Job job(4);
  job.run(50);
  job.slow_transfer(2, 0.15);
  ASSERT_GE(job.run_until(60, true), 1);
  EXPECT_EQ(job.found().front().kind, FindingKind::kSlow);
  EXPECT_EQ(job.found().front().place, 2);
  EXPECT_EQ(job.found().front().part, Part::kTransfer);
  job.slow_transfer(2, 0.02);
  EXPECT_GE(job.run_until(64, false), 4);
}

TEST(Detector, MembersWhoseTransferHasTheWaitInItAreNotBlamed) {
  Job job(4);
  job.wait_in_transfer();
  job.run(50);
  job.slow_down(2, 1.3);
  ASSERT_GE(job.run_until(60, true), 1);
  job.run(100);
  ASSERT_EQ(job.found().size(), 1U);
  EXPECT_EQ(job.found().front().place, 2);
  EXPECT_EQ(job.found().front().part, Part::kCompute);
}

TEST(Detector, LostTimeIsWhatTheNextSlowestLeaves) {
  Job job(8, 0.01);
  job.slow_down(1, 1.5);
  job.slow_down(2, 1.4);
  job.run(100);
  ASSERT_EQ(job.found().size(), 2U);
  EXPECT_NEAR(std::chrono::duration<double>(job.found()[0].lost).count(), 0.025, 0.005);
  EXPECT_EQ(job.found()[1].lost, Duration::zero());
  EXPECT_EQ(job.found()[0].members, 2);
}

TEST(Detector, ThirdOfTheMembersIsNobodysFault) {
  Job job(6);
  job.run(50);
  for (const int member : {0, 1}) job.slow_down(member, 1.5);
  ASSERT_GE(job.run_until(60, true), 1);
  ASSERT_EQ(job.found().size(), 1U);
  EXPECT_EQ(job.found()[0].kind, FindingKind::kAllSlow);
  EXPECT_EQ(job.found()[0].place, -1);
  EXPECT_EQ(job.found()[0].members, 2);
}

TEST(Detector, FindingOfSeveralNamesThem) {
  Job job(6);
  job.run(50);
  for (const int member : {1, 4}) job.slow_down(member, 1.5);
  ASSERT_GE(job.run_until(60, true), 1);
  EXPECT_EQ(job.found()[0].places, (std::vector{1, 4}));
}

TEST(Detector, FindingsOfSeveralDoNotComeAndGo) {
  Job job(4);
  job.run(50);
  for (const int member : {0, 1}) job.slow_down(member, 2);
  ASSERT_GE(job.run_until(60, true), 1);
  job.run(30);
  for (const int member : {0, 1}) job.slow_down(member, 0.5);
  job.slow_down(3, 2);
  const auto now = [&] {
    std::vector<std::pair<FindingKind, int>> all;
    for (const Finding& each : job.found()) all.emplace_back(each.kind, each.place);
    return all;
  };
  int changes = 0;
  for (int i = 0; i < 200; ++i) {
    const auto before = now();
    job.run(1);
    changes += now() == before ? 0 : 1;
  }
  EXPECT_LE(changes, 6);
  EXPECT_EQ(now(), (std::vector{std::pair{FindingKind::kSlow, 3}}));
}

TEST(Detector, TwoOfTwoAreNotSlowerThanTheOthers) {
  Job job(2);
  job.run(50);
  job.slow_down(0, 2);
  ASSERT_GE(job.run_until(60, true), 1);
  job.run(30);
  job.slow_down(0, 0.5);
  job.slow_down(1, 2);
  for (int i = 0; i < 100; ++i) {
    job.run(1);
    for (const Finding& each : job.found()) ASSERT_EQ(each.kind, FindingKind::kSlow) << i;
  }
  ASSERT_EQ(job.found().size(), 1U);
  EXPECT_EQ(job.found()[0].place, 1);
}

TEST(Detector, FiguresAreThoseOfTheLatestBlocks) {
  Job job(4);
  job.run(50);
  job.slow_down(1, 1.3);
  job.run(500);
  ASSERT_EQ(job.found().size(), 1U);
  const double mild = job.found()[0].factor - 1;
  job.slow_down(1, 1.9 / 1.3);
  job.run(130);
  EXPECT_NEAR(job.found()[0].factor - 1, 3 * mild, 0.1);  // 0.9 of its compute instead of 0.3
  EXPECT_GT(job.found()[0].steps, 500);
}

TEST(Detector, StragglerStaysOneWhileAnotherIsOnlySuspected) {
  Job job(3);
  job.run(50);
  job.slow_down(1, 2);
  ASSERT_GE(job.run_until(60, true), 1);
  job.slow_down(0, 1.6);
  for (int i = 0; i < 10; ++i) {
    job.run(1);
    ASSERT_EQ(job.found().size(), 1U);
    EXPECT_EQ(job.found()[0].kind, FindingKind::kSlow) << i;
  }
}

TEST(Detector, SlowerStepOfAllIsNobodysFault) {
  Job job(4);
  job.run(200);
  for (int member = 0; member < 4; ++member) job.slow_down(member, 1.5);
  ASSERT_GE(job.run_until(60, true), 1);
  EXPECT_EQ(job.found()[0].kind, FindingKind::kAllSlow);
  EXPECT_EQ(job.found()[0].members, 0);
  EXPECT_GT(job.found()[0].factor, 1.2);
  EXPECT_GE(job.run_until(3000, false), 1);  // it has become the usual one
}

TEST(Detector, MoreWorkIsNotSlow) {
  Job job(4);
  for (int member = 0; member < 4; ++member) job.tell_work(member, 100);
  job.run(50);
  job.slow_down(1, 1.5);
  job.tell_work(1, 150);
  ASSERT_GE(job.run_until(60, true), 1);
  EXPECT_EQ(job.found()[0].kind, FindingKind::kMoreWork);
  EXPECT_EQ(job.found()[0].place, 1);
}

TEST(Detector, MemberWithLessWorkThatHoldsNobodyUpIsNotFound) {
  Job job(4);
  for (int member = 0; member < 4; ++member) job.tell_work(member, 100);
  job.tell_work(1, 50);
  EXPECT_EQ(job.run_until(500, true), -1);
}

TEST(Detector, FindingIsClearedWhenItIsOver) {
  Job job(4);
  job.run(50);
  job.slow_down(1, 1.5);
  ASSERT_GE(job.run_until(60, true), 1);
  job.slow_down(1, 1 / 1.5);
  EXPECT_GE(job.run_until(64, false), 4);
}

TEST(Detector, ExcessOfLessThanTwoMillisecondsIsNobodysConcern) {
  Job job(4);
  for (int member = 0; member < 4; ++member) job.slow_down(member, 0.004 / 0.25);
  for (int member = 0; member < 4; ++member) job.slow_input(member, 0);
  job.slow_down(1, 1.4);
  EXPECT_EQ(job.run_until(5000, true), -1);
}

TEST(Detector, FindingEndsWhereStepsBecomeShort) {
  Job job(4);
  job.slow_down(1, 1.5);
  ASSERT_GE(job.run_until(60, true), 1);
  for (int member = 0; member < 4; ++member) job.slow_down(member, 0.001);
  for (int member = 0; member < 4; ++member) job.slow_input(member, 0);
  EXPECT_GE(job.run_until(100'000, false), 1);
}

TEST(Detector, NewMemberInThePlaceBeginsAnew) {
  Job job(4);
  job.run(50);
  job.slow_down(1, 2);
  ASSERT_GE(job.run_until(60, true), 1);
  job.slow_down(1, 0.5);
  job.detector().forget(1);
  job.run(1);
  EXPECT_TRUE(job.found().empty());
}

TEST(Detector, KnownMembersStayKnownInTheNextView) {
  Job job(4);
  job.run(50);
  job.slow_down(1, 2);
  ASSERT_GE(job.run_until(60, true), 1);
  const std::vector<int> places = {0, 1, 3};
  job.detector().begin_view(places);
  EXPECT_FALSE(job.detector().advance());
  EXPECT_EQ(job.found().size(), 1U);
}

TEST(Detector, MemberThatTellsOfNoTimesIsNotSlow) {
  Detector detector{Settings{}};
  const std::vector<int> places = {0, 1, 2};
  detector.begin_view(places);
  for (Step step = 1; step <= 100; ++step) {
    detector.add(0, {.step = step});
    detector.add(1, {.step = step, .compute = std::chrono::milliseconds(300)});
    detector.add(2, {.step = step, .compute = std::chrono::milliseconds(300)});
    detector.advance();
  }
  EXPECT_TRUE(detector.findings().empty());
  for (const Standing& standing : detector.standings())
    EXPECT_TRUE(std::isfinite(standing.ratio)) << standing.place;
}

TEST(Detector, HarmlessNoiseFindsNothing) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    Job job(seed % 2 == 0 ? 2 : 8, 0.02 * static_cast<double>(seed), seed);
    EXPECT_EQ(job.run_until(2000, true), -1);
  }
}

}  // namespace
}  // namespace paceline::stragglers

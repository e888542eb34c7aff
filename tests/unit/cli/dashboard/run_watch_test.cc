#include "cli/dashboard/run_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "base/file.h"
#include "base/text.h"
#include "cli/commands/run_source.h"
#include "cli/dashboard/run_place.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temporary_folder.h"

namespace paceline::cli {
namespace {

using kube::Json;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class RunWatchTest : public ::testing::Test {
 protected:
  std::unique_ptr<OwnedRun> make(const std::string& name, const std::string& phase = "Running") {
    auto run = *store_.create_named(name);
    write(*run, phase, 1);
    return run;
  }
  static void write(const OwnedRun& run, const std::string& phase, Step step) {
    RunState state;
    state.phase = phase;
    state.progress.step = step;
    EXPECT_TRUE(run.write_state(state, false).ok());
  }
  std::vector<std::string> names(const dashboard::Board::Changes& changes) const {
    std::vector<std::string> names;
    for (const Json& object : changes.objects) names.push_back(kube::text_at(object, {"metadata", "name"}));
    return names;
  }

  TemporaryFolder folder_;
  RunStore store_{folder_.path()};
  std::ostringstream out_;
  FakeClock clock_;
  RunSource source_{store_, clock_, out_};
  RunWatch watch_{store_, source_, clock_};
};

TEST_F(RunWatchTest, OnlyWhatChangedIsTold) {
  EXPECT_THAT(watch_.pass({}).objects, IsEmpty()) << "there is no folder yet";
  const auto one = make("one"), two = make("two");
  EXPECT_THAT(names(watch_.pass({})), ElementsAre("one", "two"));
  EXPECT_THAT(watch_.pass({}).objects, IsEmpty());
  write(*two, "Running", 2);
  EXPECT_THAT(names(watch_.pass({})), ElementsAre("two"));
  EXPECT_TRUE(write_file_atomically(one->path("job.yaml"), "kind: TrainingJob\n").ok());
  EXPECT_THAT(names(watch_.pass({})), ElementsAre("one")) << "a user has edited it";
}

TEST_F(RunWatchTest, RemovedRunsAreTold) {
  auto run = make("one", "Succeeded");
  watch_.pass({});
  run->discard();
  EXPECT_THAT(watch_.pass({}).removed, ElementsAre("default/one"));
  EXPECT_THAT(watch_.pass({}).removed, IsEmpty());
}

TEST_F(RunWatchTest, LostOwnersAreNoticed) {
  auto run = make("one");
  watch_.pass({});
  run.reset();  // its lock is free now
  EXPECT_THAT(watch_.pass({}).objects, IsEmpty());
  clock_.advance(RunWatch::kOwnerLook);
  const auto changes = watch_.pass({});
  ASSERT_THAT(changes.objects, SizeIs(1));
  EXPECT_EQ(kube::text_at(changes.objects[0], {"status", "reason"}), kOwnerLost);
  clock_.advance(RunWatch::kOwnerLook);
  EXPECT_THAT(watch_.pass({}).objects, IsEmpty()) << "one that has ended is not looked at again";
}

TEST_F(RunWatchTest, FoldersThatAreNoRunsArePassedOver) {
  std::filesystem::create_directories(folder_.path() + "/runs/nothing");
  std::ofstream(folder_.path() + "/runs/file") << "x";
  const auto changes = watch_.pass({});
  EXPECT_THAT(changes.objects, IsEmpty());
  EXPECT_THAT(changes.removed, IsEmpty());
}

TEST_F(RunWatchTest, RunsThatCannotBeReadAreLeftOut) {
  const auto run = make("one");
  std::filesystem::rename(run->folder(), folder_.path() + "/runs/.one");  // no run's name
  std::filesystem::create_directories(folder_.path() + "/runs/.nothing");
  const auto changes = watch_.pass({});
  ASSERT_TRUE(changes.left_out);
  EXPECT_THAT(*changes.left_out, SizeIs(1));
  EXPECT_FALSE(watch_.pass({}).left_out) << "that is said once";
}

// A clock of which each look takes a while.
class SlowClock final : public Clock {
 public:
  TimePoint now() const override {
    clock_.advance(std::chrono::milliseconds(3));
    return clock_.now();
  }
  WallTime wall_now() const override { return clock_.wall_now(); }

 private:
  mutable FakeClock clock_;
};

TEST_F(RunWatchTest, ManyChangesTakeSeveralPasses) {
  std::vector<std::unique_ptr<OwnedRun>> runs;
  for (int i = 0; i < 20; ++i) runs.push_back(make(str_cat("run-", i)));
  const SlowClock clock;
  RunWatch watch(store_, source_, clock);
  std::vector<std::string> told = names(watch.pass({"run-9"}));
  EXPECT_LT(told.size(), 20U);
  EXPECT_EQ(told.at(0), "run-9");
  std::set<std::string> all(told.begin(), told.end());
  for (int pass = 0; pass < 20; ++pass) {
    for (const std::string& name : names(watch.pass({}))) all.insert(name);
  }
  EXPECT_THAT(all, SizeIs(20));
}

class RunPlaceTest : public RunWatchTest {
 protected:
  RunPlace place_{store_, clock_};
  static Json named(const std::string& name) {
    return {{"metadata", {{"namespace", "default"}, {"name", name}}}};
  }
};

TEST_F(RunPlaceTest, SeriesComeFromTheRunsMetrics) {
  const auto run = make("one");
  std::ofstream(run->path("metrics.jsonl")) << R"({"type":"step","step":7,"loss":1})"
                                            << "\n";
  Step newest = -1;
  const auto look = [&](const dashboard::JobSeries& series) { newest = series.newest(); };
  EXPECT_TRUE(place_.use_series(named("one"), look).ok());
  EXPECT_EQ(newest, 7);
  std::ofstream(run->path("metrics.jsonl"), std::ios::app) << R"({"type":"step","step":8,"loss":1})"
                                                           << "\n";
  EXPECT_TRUE(place_.use_series(named("one"), look).ok());
  EXPECT_EQ(newest, 8);
  for (std::size_t i = 0; i < 2 * RunPlace::kMostTails; ++i)
    EXPECT_TRUE(place_.use_series(named(str_cat("other-", i)), look).ok());
  EXPECT_EQ(newest, -1) << "a run without metrics";
}

TEST_F(RunPlaceTest, ActionsOfUsersBecomeEvents) {
  const auto run = make("one");
  std::ofstream(run->path("events.jsonl")) << "";
  EXPECT_TRUE(place_.record(named("one"), true, "UserActionFailed", "words\nof \"somebody\"").ok());
  EXPECT_TRUE(place_.record(named("gone"), false, "UserAction", "words").ok())
      << "nothing has happened to it";
  const auto events = place_.source()->events("default", "one").value().events;
  ASSERT_THAT(events, SizeIs(1));
  EXPECT_EQ(events[0].reason, "UserActionFailed");
  EXPECT_TRUE(events[0].warning);
  EXPECT_EQ(events[0].message, "words\nof \"somebody\"");
}

TEST_F(RunPlaceTest, YamlIsWhatTheUserWrote) {
  const auto run = make("one");
  EXPECT_TRUE(write_file_atomically(run->path("job.yaml"), "kind: TrainingJob # mine\n").ok());
  EXPECT_EQ(place_.yaml(named("one")).value(), "kind: TrainingJob # mine\n");
  EXPECT_FALSE(place_.yaml(named("other")).ok());
}

}  // namespace
}  // namespace paceline::cli

#include "cli/run/metrics_file.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/file.h"
#include "tests/support/temporary_folder.h"

namespace paceline::cli {
namespace {

using namespace std::chrono_literals;

class MetricsFileTest : public ::testing::Test {
 protected:
  void append(Step step) {
    auto file = MetricsFile::open(path_);
    ASSERT_TRUE(file.ok()) << file.status();
    (*file)->steps({{{step, 0.5, 0.1, 1s}}});
    (*file)->flush();
    EXPECT_TRUE((*file)->status().ok());
  }
  std::string text() { return read_file(path_, 1 << 20).value(); }

  TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/metrics.jsonl";
};

constexpr char kFirst[] = R"({"type":"step","step":1,"loss":0.5,"learningRate":0.1,"timeSeconds":1})"
                          "\n";
constexpr char kSecond[] = R"({"type":"step","step":2,"loss":0.5,"learningRate":0.1,"timeSeconds":1})"
                           "\n";

TEST_F(MetricsFileTest, AppendsToWholeLines) {
  append(1);
  append(2);
  EXPECT_EQ(text(), std::string(kFirst) + kSecond);
}

TEST_F(MetricsFileTest, TimesGoOnFromThoseOfEarlierSessions) {
  auto file = MetricsFile::open(path_, 10);
  ASSERT_TRUE(file.ok()) << file.status();
  (*file)->steps({{{1, 0.5, 0.1, 1s}}});
  (*file)->evaluation({.step = 1, .loss = 0.5, .accuracy = 0.25, .since_start = 2s});
  (*file)->flush();
  EXPECT_NE(text().find(R"("learningRate":0.1,"timeSeconds":11})"), std::string::npos) << text();
  EXPECT_NE(text().find(R"("accuracy":0.25,"timeSeconds":12})"), std::string::npos) << text();
}

TEST_F(MetricsFileTest, ViewIsWrittenAheadOfItsFirstStep) {
  auto file = MetricsFile::open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  (*file)->view({{1}, {"worker-0"}});
  (*file)->view({{2}, {"worker-0", "worker-1"}});
  (*file)->flush();
  EXPECT_EQ(text(), "") << "no member has trained";
  for (int time = 0; time < 2; ++time) (*file)->member_steps({Role::kWorker, 0, 0, {1}, {{}}});
  (*file)->flush();
  const std::string view = R"({"type":"view","generation":2,"members":["worker-0","worker-1"]})";
  EXPECT_EQ(text().find(view), 0U) << text();
  EXPECT_EQ(text().rfind(view), 0U) << "once";
}

TEST_F(MetricsFileTest, WhatAKilledOwnerLeftOfALineIsCutOff) {
  append(1);
  for (const std::size_t length : {1u, 100u, 4096u, 10000u}) {
    std::ofstream(path_, std::ios::app) << std::string(length, 'x');
    ASSERT_TRUE(MetricsFile::open(path_).ok());
    EXPECT_EQ(text(), kFirst) << length;
  }
  std::ofstream(path_, std::ios::app) << R"({"type":"st)";
  append(2);
  EXPECT_EQ(text(), std::string(kFirst) + kSecond);
}

TEST_F(MetricsFileTest, AnEvaluationOfAnEvaluatorNamesIt) {
  auto file = MetricsFile::open(path_);
  ASSERT_TRUE(file.ok()) << file.status();
  (*file)->evaluation({.step = 1, .loss = 0.5, .accuracy = 0.25, .since_start = 1s});
  (*file)->evaluation(
      {.step = 2, .loss = 0.5, .accuracy = 0.25, .since_start = 1s, .observer = "evaluator-0"});
  (*file)->flush();
  EXPECT_EQ(
      text(),
      R"({"type":"evaluation","step":1,"loss":0.5,"accuracy":0.25,"timeSeconds":1})"
      "\n"
      R"({"type":"evaluation","step":2,"loss":0.5,"accuracy":0.25,"evaluator":"evaluator-0","timeSeconds":1})"
      "\n");
}

TEST_F(MetricsFileTest, AFileOfOnePartialLineBecomesEmpty) {
  std::ofstream(path_) << R"({"type":"st)";
  append(1);
  EXPECT_EQ(text(), kFirst);
}

TEST_F(MetricsFileTest, AKillBetweenTwoFlushesLeavesWholeLines) {
  auto file = MetricsFile::open(path_);
  ASSERT_TRUE(file.ok());
  for (Step step = 1; step <= 10'000; ++step) {
    (*file)->steps({{{step, 0.5, 0.1, 1s}}});
    if (step % 100 != 0) continue;
    const std::string now = text();
    ASSERT_TRUE(now.empty() || now.back() == '\n') << "at step " << step;
  }
}

}  // namespace
}  // namespace paceline::cli

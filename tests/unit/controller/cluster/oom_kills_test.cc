#include "controller/cluster/local/oom_kills.h"

#include <gtest/gtest.h>

#include <fstream>

#include "tests/support/temporary_folder.h"

namespace paceline::cluster {
namespace {

class OomKillsTest : public ::testing::Test {
 protected:
  void write(const std::string& content) const { std::ofstream(path_) << content; }

  const TemporaryFolder folder_;
  const std::string path_ = folder_.path() + "/memory.events";
};

TEST_F(OomKillsTest, EachExplainsOneEnd) {
  write("low 0\nmax 12\noom 3\noom_kill 2\n");
  OomKills kills(path_);
  EXPECT_FALSE(kills.take()) << "they were before";
  write("low 0\nmax 12\noom 3\noom_kill 4\n");
  EXPECT_TRUE(kills.take());
  EXPECT_TRUE(kills.take());
  EXPECT_FALSE(kills.take());
}

TEST_F(OomKillsTest, TheOnesThatAreForgottenExplainNothing) {
  write("oom_kill_disable 0\nunder_oom 0\noom_kill 0\n");
  OomKills kills(path_);
  write("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
  kills.forget();
  EXPECT_FALSE(kills.take());
}

TEST_F(OomKillsTest, ACounterThatIsMissingExplainsNothing) {
  OomKills kills(path_);
  EXPECT_FALSE(kills.take());
  write("nonsense");
  EXPECT_FALSE(kills.take());
}

TEST_F(OomKillsTest, WithoutAControlGroupTheMachineCounts) {
  EXPECT_EQ(oom_counter(""), "/proc/vmstat");
  EXPECT_EQ(oom_counter("0::/no/such/group\n4:memory:/no/such/group\n"), "/proc/vmstat");
}

}  // namespace
}  // namespace paceline::cluster

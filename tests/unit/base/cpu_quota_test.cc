#include "base/cpu_quota.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "base/processors.h"
#include "tests/support/temporary_folder.h"

namespace paceline {
namespace {

TEST(CpuQuota, RoundsUpAndIsAtLeastOne) {
  const std::vector<std::pair<std::string_view, std::optional<int>>> cases = {
      {"max 100000\n", std::nullopt},
      {"100000 100000\n", 1},
      {"150000 100000\n", 2},
      {"1000 100000", 1},
      {"400000\n 100000\n", 4},         // v1's two files
      {"-1\n 100000\n", std::nullopt},  // v1's "no quota"
      {"0 100000", std::nullopt},
      {"100000 0", std::nullopt},
      {"100000", std::nullopt},
      {"", std::nullopt},
      {"9223372036854775807 1", 1 << 20},
      {"99999999999999999999 1", std::nullopt},
  };
  for (const auto& [text, processors] : cases) EXPECT_EQ(processors_of_quota(text), processors) << text;
}

TEST(CpuQuota, TimeThatAQuotaHeldProcessesUpIsRead) {
  EXPECT_DOUBLE_EQ(throttled_seconds("usage_usec 9\nnr_throttled 2\nthrottled_usec 1500000\n").value(), 1.5);
  EXPECT_DOUBLE_EQ(throttled_seconds("nr_periods 4\nthrottled_time 2500000000\n").value(), 2.5);
  for (const char* text : {"", "throttled_usec", "throttled_usec x\n", "nr_throttled 7\n"})
    EXPECT_FALSE(throttled_seconds(text)) << text;
}

std::vector<std::string> names(std::string_view cgroups) {
  std::vector<std::string> result;
  for (const QuotaFiles& files : quota_files(cgroups, "/c"))
    result.push_back(files.period.empty() ? files.quota : files.quota + "+" + files.period);
  return result;
}

TEST(CpuQuota, LooksAtTheGroupAndAllAboveIt) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names("0::/a/b\n"), (Names{"/c/a/b/cpu.max", "/c/a/cpu.max", "/c/cpu.max"}));
  EXPECT_EQ(names("0::/\n"), Names{"/c/cpu.max"});
  EXPECT_EQ(names("5:memory:/m\n4:cpu,cpuacct:/x\n"),
            (Names{"/c/cpu,cpuacct/x/cpu.cfs_quota_us+/c/cpu,cpuacct/x/cpu.cfs_period_us",
                   "/c/cpu,cpuacct/cpu.cfs_quota_us+/c/cpu,cpuacct/cpu.cfs_period_us"}));
  EXPECT_EQ(names("3:cpuset:/x\n1:name=systemd:/y\ngarbage\n::\n"), Names{});
  std::string deep = "0::";
  for (int i = 0; i < 1000; ++i) deep += "/d";
  EXPECT_EQ(names(deep).size(), 64u);
}

void write(const std::string& path, std::string_view text) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path) << text;
}

TEST(CpuQuota, TheSmallestOfTheFilesCounts) {
  const TemporaryFolder folder;
  const std::string root = folder.path();
  EXPECT_EQ(read_cpu_quota(root), std::nullopt) << "no cgroups at all";
  write(root + "/proc/self/cgroup", "4:cpu,cpuacct:/docker/x\n0::/pod/box\n");
  EXPECT_EQ(read_cpu_quota(root), std::nullopt);
  write(root + "/sys/fs/cgroup/pod/cpu.max", "350000 100000\n");
  write(root + "/sys/fs/cgroup/pod/box/cpu.max", "max 100000\n");
  EXPECT_EQ(read_cpu_quota(root), 4) << "the group's above it";
  write(root + "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "150000\n");
  EXPECT_EQ(read_cpu_quota(root), 4) << "half of a v1 quota is none";
  write(root + "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(read_cpu_quota(root), 2) << "the container's own group, mounted as the root";
}

}  // namespace
}  // namespace paceline

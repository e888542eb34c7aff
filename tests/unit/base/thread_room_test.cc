#include "base/thread_room.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/text.h"
#include "tests/support/temporary_folder.h"

namespace paceline {
namespace {

using ::testing::HasSubstr;

constexpr uid_t kNobody = 61185;

// As a user whom RLIMIT_NPROC binds, with room for `room` threads beside this one.
int try_as_nobody(int room, int own, int others) {
  const rlimit limit{static_cast<rlim_t>(room) + 1, static_cast<rlim_t>(room) + 1};
  if (::getuid() != 0 || ::setuid(kNobody) != 0 || ::setrlimit(RLIMIT_NPROC, &limit) != 0) return 2;
  const absl::Status status = room_for_threads(own, others);
  std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  return status.ok() ? 0 : absl::IsResourceExhausted(status) ? 1 : 3;
}

TEST(ThreadRoom, IsThere) {
  EXPECT_TRUE(room_for_threads(4, 8).ok());
  EXPECT_TRUE(room_for_threads(0, 0).ok());
  EXPECT_GE(grpc_threads(), 10);
}

TEST(ThreadRoomDeathTest, IsCountedForAllAtOnceAndItsLackNamesTheLimit) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer has a thread of its own";
#endif
  if (::getuid() != 0) GTEST_SKIP() << "only root can become a user without other processes";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(::_exit(try_as_nobody(20, 6, 14)), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(
      ::_exit(try_as_nobody(20, 6, 15)), ::testing::ExitedWithCode(1),
      "this needs 21 more threads and processes, and the system starts 20: 1 of the 21 that ulimit -u "
      "allows user 61185 are in use");
  EXPECT_EXIT(::_exit(try_as_nobody(20, 21, 0)), ::testing::ExitedWithCode(1), "starts 20");
}

TEST(ThreadRoom, LimitsOfCgroupsAreNamed) {
  const testing::TemporaryFolder folder;
  const auto write = [&](const std::string& path, const std::string& text) {
    const std::filesystem::path whole = folder.path() + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  };
  write("/proc/self/cgroup", "0::/pods/one\n");
  write("/sys/fs/cgroup/pods/one/pids.max", "max\n");
  write("/sys/fs/cgroup/pods/one/pids.current", "9\n");
  write("/sys/fs/cgroup/pods/pids.max", "20\n");
  write("/sys/fs/cgroup/pods/pids.current", "19\n");
  EXPECT_THAT(thread_limits(folder.path()),
              HasSubstr(str_cat("19 of the 20 that ", folder.path(), "/sys/fs/cgroup/pods/pids.max allows")));
  write("/proc/self/cgroup", "3:cpu:/pods\n2:pids:/box\n");
  write("/sys/fs/cgroup/pids/box/pids.max", "7\n");
  write("/sys/fs/cgroup/pids/box/pids.current", "6\n");
  const std::string limits = thread_limits(folder.path());
  EXPECT_THAT(limits, HasSubstr("6 of the 7 that"));
  EXPECT_EQ(limits.find("19 of"), std::string::npos) << limits;
  EXPECT_NE(thread_limits(folder.path() + "/none"), "");
}

}  // namespace
}  // namespace paceline

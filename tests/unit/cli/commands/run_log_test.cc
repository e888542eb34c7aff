#include "cli/commands/run_log.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "base/file.h"
#include "base/text.h"
#include "controller/cluster/kube/times.h"
#include "tests/support/temporary_folder.h"

namespace paceline::cli {
namespace {

class RunLogTest : public ::testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_file_atomically(folder_.path() + "/" + name, text).ok());
  }
  absl::StatusOr<std::string> read(const std::string& name, const LogRequest& request) {
    std::string text;
    const LogSink sink{.bytes =
                           [&](std::string_view bytes) {
                             text += bytes;
                             return true;
                           },
                       .remark = nullptr};
    const absl::Status status = read_run_log(folder_.path() + "/" + name, request,
                                             *kube::parse_time("2026-01-31T12:01:00Z"), pause_, sink, {});
    return status.ok() ? absl::StatusOr<std::string>(text) : status;
  }

  TemporaryFolder folder_;
  kube::Pause pause_ = [](Duration, const std::stop_token&) { return true; };
};

TEST_F(RunLogTest, PodsAreThoseOfTheFilesNames) {
  EXPECT_TRUE(logged_pods(folder_.path() + "/none")->empty());
  for (const char* name : {"a-b-worker-10-0.log", "a-b-worker-2-0.log", "ps-0-3.log", "a-chief-0-1.log",
                           "worker-0.log", "a-worker-x-0.log", "a-boss-0-0.log", "-.log", "a-worker-0-0.txt"})
    write(name, "");
  std::string found;
  const auto pods = logged_pods(folder_.path());
  ASSERT_TRUE(pods.ok()) << pods.status();
  for (const kube::SlimPod& pod : *pods)
    found += str_cat(pod.key, " ", role_name(pod.role), " ", pod.index, " ", pod.attempt, "\n");
  EXPECT_EQ(found,
            "/a-chief-0-1 chief 0 1\n"
            "/a-b-worker-2-0 worker 2 0\n"
            "/a-b-worker-10-0 worker 10 0\n"
            "/ps-0-3 ps 0 3\n");
}

TEST_F(RunLogTest, TailAndSinceChooseTheLines) {
  const std::string early = "2026-01-31T12:00:00.000Z info  worker-0: a\n", own = "no time\n",
                    late = "2026-01-31T12:00:50.000Z info  worker-0: b\n", open = "2026-01-31T12:00:59.5Z";
  const std::string wide(70'000, 'y');
  using Seconds = std::chrono::seconds;
  const struct {
    std::string text;
    std::optional<int> tail;
    std::optional<Duration> since;
    std::string expected;
  } cases[] = {{early + own + late + own, {}, {}, early + own + late + own},
               {early + own + late + own, 2, {}, late + own},
               {early + own + late + own, 0, {}, ""},
               {early + own, 9, {}, early + own},
               {early + own + late + own, {}, Seconds(10), late + own},
               {early + own + late + own, {}, Seconds(9), ""},
               {early + own + late + own, {}, Seconds(600), early + own + late + own},
               {early + late + own + own, 2, Seconds(600), ""},
               {own + late, {}, Seconds(600), late},
               {early + open, {}, Seconds(10), open},
               {wide + late, {}, Seconds(10), ""},
               {wide + "\n" + early + wide + "\n" + late + own, {}, Seconds(10), late + own}};
  for (const auto& each : cases) {
    write("log", each.text);
    EXPECT_EQ(read("log", {.tail = each.tail, .since = each.since}).value(), each.expected) << each.expected;
  }
  // The end of the first chunk is within a line's time.
  std::string lines;
  for (std::size_t pad = 0; pad < 30; ++pad) {
    const std::string text = std::string((1 << 16) - 10 - pad, 'y') + "\n" + late + own;
    write("log", text);
    EXPECT_EQ(read("log", {.since = Seconds(10)}).value(), late + own) << pad;
  }
}

TEST_F(RunLogTest, FollowingReadsWhatComesUntilItIsOver) {
  write("log", "a\n");
  int pauses = 0;
  pause_ = [&](Duration, const std::stop_token&) {
    if (pauses++ == 0) std::ofstream(folder_.path() + "/log", std::ios::app) << "b\n";
    return pauses < 10;
  };
  EXPECT_EQ(read("log", {.follow = true, .over = [&] { return pauses == 1; }}).value(), "a\nb\n");
  EXPECT_EQ(pauses, 1);
  EXPECT_EQ(read("log", {.follow = true, .over = [] { return false; }}).value(), "a\nb\n");
  EXPECT_EQ(pauses, 10) << "it was asked to stop";
}

TEST_F(RunLogTest, FilesThatAreNoneAreErrorsUnlessTheyAreGone) {
  EXPECT_EQ(read("gone", {}).value(), "");
  std::filesystem::create_directory(folder_.path() + "/folder");
  EXPECT_TRUE(absl::IsFailedPrecondition(read("folder", {}).status()));
  std::filesystem::create_symlink("loop", folder_.path() + "/loop");
  EXPECT_FALSE(read("loop", {}).ok());
  EXPECT_FALSE(logged_pods(folder_.path() + "/loop").ok());
}

}  // namespace
}  // namespace paceline::cli

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <fstream>

#include "base/file.h"
#include "controller/cluster/local/event_log.h"
#include "controller/cluster/local/log_tail.h"
#include "tests/support/temporary_folder.h"

namespace paceline::cluster {
namespace {

constexpr std::size_t kMegabyte = 1 << 20;

class LocalFilesTest : public ::testing::Test {
 protected:
  std::string write(const std::string& content) {
    const std::string path = folder_.path() + "/file";
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }
  TemporaryFolder folder_;
};

TEST_F(LocalFilesTest, Tails) {
  struct Case {
    std::string content;
    int lines;
    std::string tail;
  };
  const Case cases[] = {
      {"", 3, ""},        {"a\nb\nc\n", 2, "b\nc\n"}, {"a\nb\nc", 2, "b\nc"}, {"a\nb\n", 5, "a\nb\n"},
      {"a\nb\n", 0, ""},  {"a\n\n\n", 2, "\n\n"},     {"\n", 1, "\n"},        {"a\nb\n", 2, "a\nb\n"},
      {"x\na\n", -1, ""},
  };
  for (const Case& c : cases) {
    const auto tail = tail_file(write(c.content), c.lines, kMegabyte);
    ASSERT_TRUE(tail.ok());
    EXPECT_EQ(*tail, c.tail) << "of '" << c.content << "', " << c.lines << " lines";
  }
}

TEST_F(LocalFilesTest, TailsAgreeWithADumbOracle) {
  std::string content;
  std::vector<std::string> lines;
  for (int i = 0; i < 3000; ++i) {
    lines.push_back(std::string(static_cast<std::size_t>(i * 37 % 113), 'x') + std::to_string(i) + "\n");
    content += lines.back();
  }
  const std::string path = write(content);
  for (const int count : {1, 2, 100, 500, 2999, 3000, 4000}) {
    std::string expected;
    for (std::size_t i = lines.size() - std::min<std::size_t>(lines.size(), count); i < lines.size(); ++i)
      expected += lines[i];
    EXPECT_EQ(*tail_file(path, count, kMegabyte), expected) << count;
  }
}

TEST_F(LocalFilesTest, ATailIsBounded) {
  const std::string path = write(std::string(5 * kMegabyte, 'x') + "\nlast\n");
  EXPECT_EQ(tail_file(path, 1, kMegabyte)->size(), 5u);
  EXPECT_EQ(tail_file(path, 2, kMegabyte)->size(), kMegabyte);
}

TEST_F(LocalFilesTest, ATailLeavesOutWhatIsBeforeItsBegin) {
  const std::string path = write("old\nnew 1\nnew 2\n");
  EXPECT_EQ(*tail_file(path, 10, kMegabyte, 4), "new 1\nnew 2\n");
  EXPECT_EQ(*tail_file(path, 1, kMegabyte, 4), "new 2\n");
  EXPECT_EQ(*tail_file(path, 10, kMegabyte, 16), "");
  EXPECT_EQ(*tail_file(path, 1, kMegabyte, 100), "new 2\n") << "somebody cut it";
}

TEST_F(LocalFilesTest, AMissingFileIsAnError) {
  EXPECT_EQ(tail_file(folder_.path() + "/none", 1, kMegabyte).status().code(), absl::StatusCode::kNotFound);
}

TEST(EventLogTest, ALineIsOneJsonObject) {
  EXPECT_EQ(event_line({"default", "job", false, "Started", "It \"runs\"."}, WallTime{}),
            "{\"time\": \"1970-01-01T00:00:00.000Z\", \"namespace\": \"default\", \"job\": \"job\", "
            "\"type\": \"Normal\", "
            "\"reason\": \"Started\", \"message\": \"It \\\"runs\\\".\"}\n");
  EXPECT_THAT(
      event_line({"n", "j", true, "R", "a\nb\t\\\x01"}, WallTime{}),
      ::testing::HasSubstr("\"Warning\", \"reason\": \"R\", \"message\": \"a\\nb\\u0009\\\\\\u0001\"}"));
}

TEST_F(LocalFilesTest, EventsAreAppended) {
  const std::string path = folder_.path() + "/events.jsonl";
  for (int i = 0; i < 2; ++i) {
    const auto log = EventLog::open(path);
    ASSERT_TRUE(log.ok());
    ASSERT_TRUE(log->write({"n", "j", false, "R", std::to_string(i)}, WallTime{}).ok());
  }
  const std::string text = *read_file(path, kMegabyte);
  EXPECT_EQ(std::ranges::count(text, '\n'), 2);
  EXPECT_FALSE(EventLog::open(folder_.path() + "/none/events.jsonl").ok());
}

TEST_F(LocalFilesTest, AnEventThatDoesNotFitIsAnError) {
  const auto log = EventLog::open(write(""));
  ASSERT_TRUE(log.ok());
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit tight{10, before.rlim_max};
  (void)::signal(SIGXFSZ, SIG_IGN);  // as base/program.h has it
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &tight), 0);
  const absl::Status cut = log->write({"n", "j", false, "R", "m"}, WallTime{});
  const absl::Status nothing = log->write({"n", "j", false, "R", "m"}, WallTime{});
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(cut.code(), absl::StatusCode::kResourceExhausted) << cut;
  EXPECT_EQ(nothing.code(), absl::StatusCode::kResourceExhausted) << nothing;
}

TEST_F(LocalFilesTest, APipeIsNoLog) {
  const std::string pipe = folder_.path() + "/pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(EventLog::open(pipe).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(tail_file(pipe, 1, kMegabyte, 0).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace paceline::cluster

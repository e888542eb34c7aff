// Transcripts (testdata/*.txt): lines that begin with "> " are what the server does, the others what the core
// answers.
//
//   > page VERSION [TOKEN]          the page that was asked for; TOKEN: there are more
//   > failed CODE [AFTER_MS]        listing failed; CODE: 410, 429, 500, 413 (too large), 0 (no connection)
//   > event VERSION                 of the watch
//   > error CODE                    an ERROR event, and then the end
//   > end LASTED_MS [CODE]          the watch ended; with CODE: by an error, -1: by silence
//
// After each, what to do next; a wait is done at once. Set PACELINE_UPDATE_TRANSCRIPTS to write them anew.

#include "controller/cluster/kube/reflector_core.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>
#include <sstream>

#include "base/check.h"
#include "base/text.h"
#include "controller/cluster/kube/api_error.h"
#include "tests/support/paths.h"
#include "tests/support/transcript.h"

namespace paceline::kube {
namespace {

using std::chrono::milliseconds;
namespace fs = std::filesystem;

const fs::path kFolder = fs::path(source_path("tests/unit/controller/cluster/kube/testdata"));

absl::Status error(int code, int after_ms = 0) {
  if (code == 0) return absl::UnavailableError("no connection");
  if (code == -1) return absl::DeadlineExceededError("silence");
  if (code == 413) return absl::ResourceExhaustedError("too large");
  Response response{code, "", std::nullopt, ""};
  if (after_ms > 0) response.retry_after = milliseconds(after_ms);
  return error_of(response);
}

class Player {
 public:
  std::string begin() { return next(); }
  std::string play(const std::string& line) {
    std::istringstream in(line);
    std::string command, version, token;
    in >> command;
    std::string said;
    int number = 0, code = 0;
    if (command == "page") {
      in >> version >> token;
      if (core_.page_read(version, token)) said = "  the list is complete\n";
    } else if (command == "failed") {
      in >> code >> number;
      core_.list_failed(error(code, number));
    } else if (command == "event") {
      in >> version;
      if (core_.event_read(version)) return "";
      core_.watch_ended(absl::OkStatus(), milliseconds(0));
    } else if (command == "error") {
      in >> code;
      core_.error_read(error(code));
      core_.watch_ended(absl::OkStatus(), milliseconds(0));
    } else if (command == "end") {
      in >> number;
      core_.watch_ended(in >> code ? error(code) : absl::OkStatus(), milliseconds(number));
    } else {
      PL_CHECK(false, "a command of the transcript");
    }
    return said + next();
  }

 private:
  static std::string in_ms(Duration time) {
    return str_cat(std::chrono::duration_cast<milliseconds>(time).count(), " ms");
  }
  std::string next() {
    std::string said;
    for (;;) {
      const ReflectorCore::Action action = core_.next();
      if (const auto* wait = std::get_if<ReflectorCore::Wait>(&action)) {
        said += str_cat("  wait ", in_ms(wait->time), ": ", wait->reason, "\n");
      } else if (const auto* list = std::get_if<ReflectorCore::List>(&action)) {
        const std::string from = list->continue_token.empty() ? "" : " from " + list->continue_token;
        return said + str_cat("  list ", list->round, ": ", list->limit, " objects", from, "\n");
      } else {
        const auto& watch = std::get<ReflectorCore::Watch>(action);
        return said + str_cat("  watch from ", watch.resource_version, "\n");
      }
    }
  }
  ReflectorCore core_{ReflectorLimits(), 7};
};

std::string run(const std::string& transcript) {
  Player player;
  std::istringstream in(transcript);
  std::string out;
  bool begun = false;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("> ") && !line.starts_with("#") && !line.empty()) continue;
    if (line.starts_with("> ") && !begun) out += player.begin();
    if (line.starts_with("> ")) begun = true;
    out += line + "\n";
    if (line.starts_with("> ")) out += player.play(line.substr(2));
  }
  return out;
}

class ReflectorTranscriptTest : public ::testing::TestWithParam<std::string> {};

TEST_P(ReflectorTranscriptTest, HappensAsWritten) {
  happens_as_written(kFolder, GetParam(), run);
}

INSTANTIATE_TEST_SUITE_P(Reflector, ReflectorTranscriptTest, ::testing::ValuesIn(transcripts(kFolder)),
                         [](const auto& info) { return info.param; });

Duration wait_of(ReflectorCore& core) {
  const auto action = core.next();
  const auto* wait = std::get_if<ReflectorCore::Wait>(&action);
  return wait == nullptr ? Duration::zero() : wait->time;
}

TEST(ReflectorCoreTest, WaitsGrowUpToTheLongestAndDifferBySeed) {
  std::set<Duration> first;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    ReflectorCore core(ReflectorLimits(), seed);
    for (int i = 0; i < 100; ++i) {
      core.list_failed(error(500));
      const Duration wait = wait_of(core);
      if (i == 0) first.insert(wait);
      EXPECT_GE(wait, milliseconds(800));
      EXPECT_LE(wait, std::chrono::seconds(30));
      EXPECT_TRUE(i <= 6 || wait == std::chrono::seconds(30)) << i;
    }
  }
  EXPECT_GT(first.size(), 15u);
}

TEST(ReflectorCoreTest, AServerThatOnlyListsIsNotStormed) {
  ReflectorCore core(ReflectorLimits(), 1);
  Duration waited{};
  int requests = 0;
  while (waited < std::chrono::hours(1)) {
    const auto action = core.next();
    if (const auto* wait = std::get_if<ReflectorCore::Wait>(&action)) {
      waited += wait->time;
      continue;
    }
    ++requests;
    if (std::holds_alternative<ReflectorCore::List>(action)) {
      core.page_read("5", "");
    } else {
      core.watch_ended(error(403), milliseconds(1));
    }
  }
  EXPECT_LT(requests, 180);
}

TEST(ReflectorCoreTest, AListThatDoesNotEndIsGivenUp) {
  ReflectorCore core(ReflectorLimits{.pages = 10}, 1);
  int pages = 0;
  while (std::holds_alternative<ReflectorCore::List>(core.next()) && pages < 100) {
    EXPECT_FALSE(core.page_read("5", str_cat("t", ++pages)));
  }
  EXPECT_EQ(pages, 10);
  EXPECT_EQ(std::get<ReflectorCore::List>(core.next()).continue_token, "");
}

TEST(ReflectorCoreTest, ARetryAfterOfDaysIsNotWaitedFor) {
  ReflectorCore core(ReflectorLimits(), 1);
  core.list_failed(error(429, 1'000'000'000));
  EXPECT_EQ(wait_of(core), std::chrono::minutes(10));
}

// Also of a watch, by its answer or by an event; the next one begins where the last one was.
TEST(ReflectorCoreTest, AWatchIsAskedForAgainWhenTheServerSays) {
  ReflectorCore core(ReflectorLimits(), 1);
  core.page_read("5", "");
  (void)core.next();
  core.watch_ended(error(429, 40'000), milliseconds(1));
  EXPECT_EQ(wait_of(core), std::chrono::seconds(40));
  EXPECT_EQ(std::get<ReflectorCore::Watch>(core.next()).resource_version, "5");
  const Json busy = {{"kind", "Status"}, {"code", 503}, {"details", {{"retryAfterSeconds", 50}}}};
  core.error_read(error_of(busy));
  core.watch_ended(absl::OkStatus(), milliseconds(1));
  EXPECT_EQ(wait_of(core), std::chrono::seconds(50));
  EXPECT_EQ(std::get<ReflectorCore::Watch>(core.next()).resource_version, "5");
}

TEST(ReflectorCoreTest, WatchesAskForDifferentTimes) {
  ReflectorCore core(ReflectorLimits(), 3);
  core.page_read("5", "");
  std::set<Duration> times;
  for (int i = 0; i < 20; ++i) {
    const auto action = core.next();
    const Duration time = std::get<ReflectorCore::Watch>(action).timeout;
    EXPECT_GE(time, std::chrono::minutes(5));
    EXPECT_LE(time, std::chrono::minutes(10));
    times.insert(time);
    core.watch_ended(absl::OkStatus(), time);
  }
  EXPECT_GT(times.size(), 15u);
}

TEST(ReflectorCoreTest, VersionsAreComparedAsNumbersOrNotAtAll) {
  EXPECT_TRUE(is_older("9", "10"));
  EXPECT_FALSE(is_older("10", "9"));
  EXPECT_FALSE(is_older("9", "9"));
  EXPECT_FALSE(is_older("", "9"));
  EXPECT_FALSE(is_older("a", "9"));
  EXPECT_FALSE(is_older("8", "9x"));
}

}  // namespace
}  // namespace paceline::kube

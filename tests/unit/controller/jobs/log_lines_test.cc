#include "controller/jobs/log_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "base/text.h"
#include "controller/cluster/kube/times.h"

namespace paceline::jobs {
namespace {

std::string fed(LogLines& lines, std::string_view bytes) {
  std::string out;
  lines.feed(bytes, out);
  return out;
}

TEST(LogLinesTest, TimesGoAndLinesStay) {
  LogLines lines;
  EXPECT_EQ(lines.from(), std::nullopt);
  EXPECT_EQ(fed(lines, "2026-01-31T12:00:00.5Z one\n2026-01-31T12:00:01Z  two"), "one\n");
  EXPECT_EQ(fed(lines, " and more\n"), " two and more\n");
  EXPECT_EQ(lines.from(), kube::parse_time("2026-01-31T12:00:01Z"));
  EXPECT_EQ(fed(lines, "no time here\n\n"), "no time here\n\n");
}

TEST(LogLinesTest, ReadAgainEachLineComesOnce) {
  LogLines lines;
  EXPECT_EQ(fed(lines,
                "2026-01-31T12:00:00Z a\n2026-01-31T12:00:00.1Z b\n2026-01-31T12:00:00.1Z "
                "c\n2026-01-31T12:00:00.2Z cut o"),
            "a\nb\nc\n");
  lines.restart();
  EXPECT_EQ(fed(lines,
                "2026-01-31T12:00:00Z a\n2026-01-31T12:00:00.1Z b\n2026-01-31T12:00:00.1Z "
                "c\n2026-01-31T12:00:00.1Z d\n"),
            "d\n");
  lines.restart();
  EXPECT_EQ(fed(lines,
                "2026-01-31T12:00:00.10Z b\n2026-01-31T12:00:00.1Z c\n2026-01-31T12:00:00.1Z "
                "d\n2026-01-31T12:00:00.2Z cut off\n"),
            "cut off\n");
}

TEST(LogLinesTest, EndlessLinesAreNotHeldForEver) {
  LogLines lines;
  const std::string piece(LogLines::kMaxHeldBytes, 'x');
  EXPECT_EQ(fed(lines, "2026-01-31T12:00:00Z "), "");
  const std::string first = fed(lines, piece);
  EXPECT_EQ(first, piece);
  EXPECT_EQ(fed(lines, "rest\n2026-01-31T12:00:01Z next\n"), "rest\nnext\n");
  std::string out;
  lines.feed("2026-01-31T12:00:02Z half", out);
  lines.finish(out);
  EXPECT_EQ(out, "half");
}

// However the log is cut, and however often it is read again from its last line's second on, it comes whole.
TEST(LogLinesTest, AnyCutsGiveTheSameLines) {
  const unsigned seed = std::random_device{}();
  SCOPED_TRACE(str_cat("seed ", seed));
  std::mt19937 random(seed);
  std::vector<std::pair<WallTime, std::string>> log;
  std::string expected;
  WallTime time = *kube::parse_time("2026-01-31T12:00:00Z");
  for (int i = 0; i < 300; ++i) {
    time += std::chrono::milliseconds(random() % 3 == 0 ? random() % 900 : 0);
    const std::string text = str_cat("line ", random() % 4 == 0 ? 7 : i, "\n");
    log.emplace_back(time, str_cat(kube::format_micro_time(time), " ", text));
    expected += text;
  }
  LogLines lines;
  std::string out;
  for (bool whole = false; !whole;) {
    std::string stream;
    for (const auto& [at, text] : log) {
      if (!lines.from() || at >= std::chrono::floor<std::chrono::seconds>(*lines.from())) stream += text;
    }
    std::size_t sent = 0;
    const std::size_t end =
        random() % 5 == 0 ? stream.size() : std::min<std::size_t>(stream.size(), random() % 4000);
    whole = end == stream.size();
    while (sent < end) {
      const std::size_t next = std::min<std::size_t>(end, sent + 1 + random() % 100);
      lines.feed(std::string_view(stream).substr(sent, next - sent), out);
      sent = next;
    }
    if (!whole) lines.restart();
  }
  EXPECT_EQ(out, expected);
}

}  // namespace
}  // namespace paceline::jobs

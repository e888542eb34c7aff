#include "cli/view/sanitize.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/sanitize.h"
#include "cli/view/terminal.h"

namespace paceline::cli {
namespace {

TEST(SanitizeTest, OnlyOurOwnStylesPass) {
  const Terminal colour{.color = true};
  for (const Style style :
       {Style::kBold, Style::kDim, Style::kRed, Style::kGreen, Style::kYellow, Style::kCyan}) {
    const std::string ours = styled(colour, style, "Failed");
    EXPECT_EQ(sanitize_styled(ours), ours);
    EXPECT_EQ(sanitize_styled(styled(colour, style, "a\x1b[2J")), styled(colour, style, "a\\x1b[2J"));
  }
  EXPECT_EQ(sanitize_styled("\x1b[8mhidden\x1b[3"), "\\x1b[8mhidden\\x1b[3");
  EXPECT_EQ(sanitize_styled("\x1b"), "\\x1b");
  EXPECT_EQ(sanitize_styled("a\tb\n\xc3\xa9\xff"), "a\tb\n\xc3\xa9\\xff");
}

// Ours are closed where they begin; a stranger's would colour all that comes.
TEST(SanitizeTest, AStyleEndsWithItsLine) {
  EXPECT_EQ(sanitize_styled("\x1b[31mred\nplain"), "\x1b[31mred\x1b[0m\nplain");
  EXPECT_EQ(sanitize_styled("a\x1b[1m"), "a\x1b[1m\x1b[0m");
  EXPECT_EQ(sanitize_styled("\x1b[1m\x1b[0m\n"), "\x1b[1m\x1b[0m\n");
}

TEST(SanitizeTest, WhereNothingIsStyledNoStylePasses) {
  std::ostringstream out;
  {
    const SanitizingBuffer buffer(out, sanitize);
    out << "\x1b[31mred\n";
  }
  EXPECT_EQ(out.str(), "\\x1b[31mred\n");
}

TEST(SanitizeTest, AStreamIsHarmlessWhileABufferStandsBeforeIt) {
  std::ostringstream out;
  {
    const SanitizingBuffer buffer(out, sanitize_styled);
    out << "title \x1b]0;mine\x07" << 7 << '\n';
    EXPECT_EQ(static_cast<std::ostream&>(out).rdbuf(), &buffer);
    out << "cut \xc3";  // a character in two pieces
    out << "\xa9" << std::flush << "end\r";
  }
  EXPECT_EQ(out.str(),
            "title \\x1b]0;mine\\x077\ncut \xc3\xa9"
            "end\\x0d");
  out << "\x1b";
  EXPECT_TRUE(out.str().ends_with("\x1b"));
}

TEST(SanitizeTest, FramesPassInTheirTurn) {
  std::ostringstream out;
  {
    const SanitizingBuffer buffer(out, sanitize_styled);
    out << "before\r";
    write_frame(out, "\x1b[2A\r\x1b[2Kframe\n");
    out << "after";
  }
  EXPECT_EQ(out.str(), "before\\x0d\x1b[2A\r\x1b[2Kframe\nafter");
  write_frame(out, "\x1b[1A");
  EXPECT_TRUE(out.str().ends_with("after\x1b[1A"));
}

TEST(SanitizeTest, ALostByteIsTheStreams) {
  struct Full : std::streambuf {
  } full;  // takes nothing
  std::ostream out(&full);
  {
    const SanitizingBuffer buffer(out, sanitize_styled);
    out << "x" << std::flush;
    EXPECT_FALSE(out.good());
  }
  EXPECT_FALSE(out.good());
}

}  // namespace
}  // namespace paceline::cli

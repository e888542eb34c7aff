#include "cli/view/harmless.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/visible.h"
#include "cli/view/terminal.h"

namespace paceline::cli {
namespace {

TEST(HarmlessTest, OnlyOurOwnStylesPass) {
  const Terminal colour{.color = true};
  for (const Style style :
       {Style::kBold, Style::kDim, Style::kRed, Style::kGreen, Style::kYellow, Style::kCyan}) {
    const std::string ours = styled(colour, style, "Failed");
    EXPECT_EQ(harmless(ours), ours);
    EXPECT_EQ(harmless(styled(colour, style, "a\x1b[2J")), styled(colour, style, "a\\x1b[2J"));
  }
  EXPECT_EQ(harmless("\x1b[8mhidden\x1b[3"), "\\x1b[8mhidden\\x1b[3");
  EXPECT_EQ(harmless("\x1b"), "\\x1b");
  EXPECT_EQ(harmless("a\tb\n\xc3\xa9\xff"), "a\tb\n\xc3\xa9\\xff");
}

// Ours are closed where they begin; a stranger's would colour all that comes.
TEST(HarmlessTest, AStyleEndsWithItsLine) {
  EXPECT_EQ(harmless("\x1b[31mred\nplain"), "\x1b[31mred\x1b[0m\nplain");
  EXPECT_EQ(harmless("a\x1b[1m"), "a\x1b[1m\x1b[0m");
  EXPECT_EQ(harmless("\x1b[1m\x1b[0m\n"), "\x1b[1m\x1b[0m\n");
}

TEST(HarmlessTest, WhereNothingIsStyledNoStylePasses) {
  std::ostringstream out;
  {
    const HarmlessBuffer buffer(out, visible);
    out << "\x1b[31mred\n";
  }
  EXPECT_EQ(out.str(), "\\x1b[31mred\n");
}

TEST(HarmlessTest, AStreamIsHarmlessWhileABufferStandsBeforeIt) {
  std::ostringstream out;
  {
    const HarmlessBuffer buffer(out, harmless);
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

TEST(HarmlessTest, FramesPassInTheirTurn) {
  std::ostringstream out;
  {
    const HarmlessBuffer buffer(out, harmless);
    out << "before\r";
    write_frame(out, "\x1b[2A\r\x1b[2Kframe\n");
    out << "after";
  }
  EXPECT_EQ(out.str(), "before\\x0d\x1b[2A\r\x1b[2Kframe\nafter");
  write_frame(out, "\x1b[1A");
  EXPECT_TRUE(out.str().ends_with("after\x1b[1A"));
}

TEST(HarmlessTest, ALostByteIsTheStreams) {
  struct Full : std::streambuf {
  } full;  // takes nothing
  std::ostream out(&full);
  {
    const HarmlessBuffer buffer(out, harmless);
    out << "x" << std::flush;
    EXPECT_FALSE(out.good());
  }
  EXPECT_FALSE(out.good());
}

}  // namespace
}  // namespace paceline::cli

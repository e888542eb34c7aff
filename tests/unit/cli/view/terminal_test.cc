#include "cli/view/terminal.h"

#include <gtest/gtest.h>

namespace paceline::cli {
namespace {

TEST(TerminalTest, WidthCountsCharactersNotBytesNorEscapes) {
  EXPECT_EQ(display_width("abc"), 3);
  EXPECT_EQ(display_width("äöü…"), 4);
  EXPECT_EQ(display_width("\x1b[31mred\x1b[0m"), 3);
}

TEST(TerminalTest, FitCutsAndClosesColours) {
  const Terminal plain{}, colour{.interactive = true, .color = true, .unicode = true};
  EXPECT_EQ(fit(plain, "abcdef", 6), "abcdef");
  EXPECT_EQ(fit(plain, "abcdef", 4), "abc~");
  EXPECT_EQ(fit(colour, "\x1b[31mabcdef\x1b[0m", 4), "\x1b[31mabc…\x1b[0m");
  EXPECT_EQ(display_width(fit(colour, "ääääää", 3)), 3);
}

TEST(TerminalTest, NoColourMeansNoEscapes) {
  EXPECT_EQ(styled(Terminal{}, Style::kRed, "x"), "x");
  EXPECT_EQ(styled(Terminal{.color = true}, Style::kRed, "x"), "\x1b[31mx\x1b[0m");
}

TEST(TerminalTest, TablesAlign) {
  const auto lines = align_table({{"A", "N"}, {"long", "1"}, {"b", "22"}}, {false, true});
  EXPECT_EQ(lines, (std::vector<std::string>{"A      N", "long   1", "b     22"}));
}

TEST(TerminalTest, BarIsAlwaysAsWide) {
  for (const double fraction : {-1.0, 0.0, 0.37, 1.0, 7.0, std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(display_width(progress_bar(Terminal{}, fraction, 20)), 20) << fraction;
  }
}

TEST(TerminalTest, NumbersForPeople) {
  EXPECT_EQ(with_commas(1234567), "1,234,567");
  EXPECT_EQ(with_commas(-1234), "-1,234");
  EXPECT_EQ(with_commas(12), "12");
  EXPECT_EQ(human_bytes(512), "512 B");
  EXPECT_EQ(human_bytes(1536), "1.5 KiB");
  EXPECT_EQ(human_seconds(-1), "-");
  EXPECT_EQ(fixed(-0.04, 1), "0.0");
  EXPECT_EQ(fixed(-0.06, 1), "-0.1");
  EXPECT_EQ(loss_text(0.28691), "0.2869");
  EXPECT_EQ(loss_text(0), "0.0000");
  EXPECT_EQ(loss_text(0.00001234), "1.234e-05");
  EXPECT_EQ(loss_text(1.4165e36), "1.417e+36");
  EXPECT_EQ(loss_text(std::numeric_limits<double>::quiet_NaN()), "nan");
}

// A cell is escaped before its column's width is known, and never ends its line.
TEST(TerminalTest, CellsOfATableAreVisibleAndOneLine) {
  EXPECT_EQ(sanitize_line("a\nb\tc\x1b[31m"), "a b c\\x1b[31m");
  EXPECT_EQ(align_table({{"a\x1b[31m", "x"}, {"b\nc", "y"}}, {}),
            (std::vector<std::string>{"a\\x1b[31m  x", "b c        y"}));
}

}  // namespace
}  // namespace paceline::cli

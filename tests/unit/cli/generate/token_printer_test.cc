#include "cli/generate/token_printer.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>

namespace paceline::cli {
namespace {

// What has been printed behind each byte, with | between, and at the end.
std::string shown(const std::string& text, bool terminal) {
  std::ostringstream out;
  TokenPrinter printer(out, Writing::kBytes, terminal);
  std::string all;
  for (const char byte : text) {
    EXPECT_TRUE(printer.print(static_cast<unsigned char>(byte)));
    all += out.str() + "|";
    out.str("");
  }
  EXPECT_TRUE(printer.end());
  return all + out.str();
}

TEST(TokenPrinter, APipeGetsEveryByteAtOnce) {
  EXPECT_EQ(shown("a\xc3\xa9\x1b", false), "a|\xc3|\xa9|\x1b|\n");
  EXPECT_EQ(shown("a\n", false), "a|\n|");
}

TEST(TokenPrinter, ATerminalGetsCharactersWholeAndHarmless) {
  EXPECT_EQ(shown("aé€", true), "a||é|||€|\n");
  EXPECT_EQ(shown("\x1b[", true), "\\x1b|[|\n");
  EXPECT_EQ(shown("\xff"
                  "a\xc3"
                  "b",
                  true),
            "|\\xffa||\\xc3"
            "b|\n");
  EXPECT_EQ(shown("\xc3", true), "|\\xc3\n");
}

TEST(TokenPrinter, NumbersHaveCommasBetween) {
  std::ostringstream out;
  TokenPrinter printer(out, Writing::kNumbers, true);
  for (const int token : {7, 0, 50256}) EXPECT_TRUE(printer.print(token));
  EXPECT_TRUE(printer.end());
  EXPECT_EQ(out.str(), "7,0,50256\n");
}

TEST(TokenPrinter, SaysWhenNobodyReads) {
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  EXPECT_FALSE(TokenPrinter(out, Writing::kBytes, false).print('a'));
}

}  // namespace
}  // namespace paceline::cli

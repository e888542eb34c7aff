#include "cli/generate/token_printer.h"

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <tuple>
#include <vector>

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

// Counts what reaches it.
struct Pieces : std::streambuf {
  std::vector<std::string> pieces;
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    pieces.emplace_back(text, static_cast<std::size_t>(count));
    return count;
  }
  int_type overflow(int_type c) override {
    pieces.emplace_back(1, static_cast<char>(c));
    return c;
  }
};

TEST(TokenPrinter, APromptIsOnePiece) {
  const std::vector<std::int32_t> prompt = {'a', '\n', 0xc3, 0xa9, 0x1b};
  for (const auto& [terminal, writing, piece] : {std::tuple(false, Writing::kBytes, "a\n\xc3\xa9\x1b"),
                                                 std::tuple(true, Writing::kBytes, "a\n\xc3\xa9\\x1b"),
                                                 std::tuple(true, Writing::kNumbers, "97,10,195,169,27")}) {
    Pieces pieces;
    std::ostream out(&pieces);
    EXPECT_TRUE(TokenPrinter(out, writing, terminal).print(prompt));
    EXPECT_EQ(pieces.pieces, std::vector<std::string>{piece});
  }
}

TEST(TokenPrinter, SaysWhenNobodyReads) {
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  EXPECT_FALSE(TokenPrinter(out, Writing::kBytes, false).print('a'));
}

}  // namespace
}  // namespace paceline::cli

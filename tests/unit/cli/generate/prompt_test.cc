#include "cli/generate/prompt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace paceline::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string words(const absl::StatusOr<std::vector<std::int32_t>>& tokens) {
  EXPECT_EQ(tokens.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(tokens.status().message());
}

TEST(Prompt, TextIsItsBytes) {
  EXPECT_THAT(tokens_of_text("Az\n\xff", 256).value(), ElementsAre(65, 122, 10, 255));
  EXPECT_THAT(tokens_of_text("é", 256).value(), ElementsAre(0xc3, 0xa9));
  EXPECT_THAT(tokens_of_text("", 256).value(), IsEmpty());
}

TEST(Prompt, ACharacterThatTheVocabularyLacksIsNamed) {
  EXPECT_EQ(words(tokens_of_text("caf\xc3\xa9!", 128)),
            "the prompt's byte 3, 0xc3 of \"é\", is no token of the model, whose vocabularySize is 128");
  EXPECT_THAT(words(tokens_of_text("caf\xc3\xa9!", 0xa0)), HasSubstr("byte 3, 0xc3 of \"é\""));
  EXPECT_THAT(words(tokens_of_text("a\xe2\x82\xac", 0xe2)), HasSubstr("byte 1, 0xe2 of \"€\""));
  EXPECT_THAT(words(tokens_of_text("a z", 100)), HasSubstr("byte 2, 0x7a of \"z\""));
  EXPECT_THAT(words(tokens_of_text("\xff", 200)), HasSubstr("byte 0, 0xff, is no token"));
  EXPECT_THAT(words(tokens_of_text("\xc3", 128)), HasSubstr("byte 0, 0xc3, is no token"));
}

TEST(Prompt, NumbersStandBetweenCommasOrSpace) {
  EXPECT_THAT(tokens_of_numbers("1,2,3", 4).value(), ElementsAre(1, 2, 3));
  EXPECT_THAT(tokens_of_numbers(" 50256 0,\n7,\n", 50257).value(), ElementsAre(50256, 0, 7));
  EXPECT_THAT(tokens_of_numbers("", 4).value(), IsEmpty());
  EXPECT_THAT(tokens_of_numbers(" \n", 4).value(), IsEmpty());
  EXPECT_THAT(tokens_of_numbers("1 , 2", 4).value(), ElementsAre(1, 2));
}

TEST(Prompt, WhatIsNoTokenIsNamed) {
  EXPECT_EQ(words(tokens_of_numbers("1,x,3", 4)),
            "the prompt's token 1: \"x\" is no whole number from 0 to 3");
  EXPECT_THAT(words(tokens_of_numbers("4", 4)), HasSubstr("token 0: \"4\" is no whole number from 0 to 3"));
  EXPECT_THAT(words(tokens_of_numbers("-1", 4)), HasSubstr("\"-1\""));
  EXPECT_THAT(words(tokens_of_numbers("1.5", 4)), HasSubstr("\"1.5\""));
  EXPECT_THAT(words(tokens_of_numbers("10,010", 256)),
              HasSubstr("token 1: \"010\" is no whole number from 0 to 255: it begins with a zero"));
  EXPECT_THAT(words(tokens_of_numbers(std::string(1000, '1'), 256)),
              HasSubstr("token 0: \"" + std::string(32, '1') + "\" is no"));
  EXPECT_THAT(words(tokens_of_numbers("99999999999999999999", 4)), HasSubstr("\"99999999999999999999\""));
}

// As it is where a number was forgotten, or a shell's variable is empty.
TEST(Prompt, ACommaWithoutATokenIsNone) {
  EXPECT_EQ(words(tokens_of_numbers("1,,2", 4)), "the prompt's token 1: nothing stands before its comma");
  EXPECT_EQ(words(tokens_of_numbers("1, \n,2", 4)), "the prompt's token 1: nothing stands before its comma");
  EXPECT_EQ(words(tokens_of_numbers(",1", 4)), "the prompt's token 0: nothing stands before its comma");
  EXPECT_EQ(words(tokens_of_numbers(" ,\n", 4)), "the prompt's token 0: nothing stands before its comma");
}

TEST(Prompt, TextIsBytesAndAllElseNumbers) {
  v1::DataSpec data;
  data.set_format(v1::DataSpec::TEXT);
  EXPECT_EQ(writing_of(data), Writing::kBytes);
  data.set_format(v1::DataSpec::TOKENS);
  EXPECT_EQ(writing_of(data), Writing::kNumbers);
  data.set_format(v1::DataSpec::CUSTOM);
  EXPECT_EQ(writing_of(data), Writing::kNumbers);
}

}  // namespace
}  // namespace paceline::cli

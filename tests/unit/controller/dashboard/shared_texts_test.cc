#include "controller/dashboard/shared_texts.h"

#include <gtest/gtest.h>

namespace paceline::dashboard {
namespace {

std::shared_ptr<const std::string> text_of(std::size_t bytes) {
  return std::make_shared<const std::string>(bytes, 'x');
}

TEST(SharedTextsTest, TextHoldsUntilItsSourceChanges) {
  SharedTexts texts;
  const SharedTexts::Source source{std::make_shared<const kube::Json>(), {}};
  texts.keep("a", source, text_of(3));
  ASSERT_NE(texts.find("a", source), nullptr);
  EXPECT_EQ(texts.find("a", source)->size(), 3U);
  EXPECT_EQ(texts.find("b", source), nullptr);
  EXPECT_EQ(texts.find("a", {std::make_shared<const kube::Json>(), {}}), nullptr);
}

TEST(SharedTextsTest, TextsAreBoundedByTheirBytesAndNumber) {
  SharedTexts texts;
  const SharedTexts::Source source;
  texts.keep("a", source, text_of(SharedTexts::kMostBytes / 2));
  texts.keep("b", source, text_of(SharedTexts::kMostBytes / 2));
  EXPECT_NE(texts.find("a", source), nullptr);
  texts.keep("c", source, text_of(1));
  EXPECT_EQ(texts.find("a", source), nullptr);
  EXPECT_EQ(texts.find("b", source), nullptr);
  EXPECT_NE(texts.find("c", source), nullptr);
  for (std::size_t i = 0; i < SharedTexts::kMost; ++i) texts.keep(std::to_string(i), source, text_of(1));
  EXPECT_EQ(texts.find("c", source), nullptr);
}

}  // namespace
}  // namespace paceline::dashboard

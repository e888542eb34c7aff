#include "controller/coordinator/core_hello.h"

#include <gtest/gtest.h>

namespace paceline::coordinator {
namespace {

TEST(CutTest, NeverSplitsACharacter) {
  EXPECT_EQ(cut("short"), "short");
  EXPECT_EQ(cut("abcdef", 3), "abc");
  const std::string euros = "\xE2\x82\xAC\xE2\x82\xAC";  // two characters of three bytes
  const std::size_t kept[] = {0, 0, 0, 3, 3, 3, 6, 6};
  for (std::size_t limit = 0; limit < std::size(kept); ++limit) {
    EXPECT_EQ(cut(euros, limit), euros.substr(0, kept[limit])) << limit;
  }
  EXPECT_EQ(cut(std::string(kMaxTextBytes + 9, 'x')).size(), kMaxTextBytes);
}

}  // namespace
}  // namespace paceline::coordinator

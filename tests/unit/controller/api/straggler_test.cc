#include "controller/api/straggler.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace paceline::api {
namespace {

TEST(StragglerTest, EachEnumeratorHasANameOfItsOwn) {
  std::set<std::string> kinds, causes;
  for (int i = 0; i <= static_cast<int>(StragglerKind::kAllSlow); ++i)
    kinds.insert(name(static_cast<StragglerKind>(i)));
  for (int i = 0; i <= static_cast<int>(StragglerCause::kRequested); ++i)
    causes.insert(name(static_cast<StragglerCause>(i)));
  EXPECT_EQ(kinds.size(), 3U);
  EXPECT_EQ(causes.size(), 10U);
  EXPECT_STREQ(name(StragglerKind::kAllSlow), "AllSlow");
  EXPECT_STREQ(name(StragglerCause::kInput), "Input");
  EXPECT_STREQ(name(StragglerCause::kUnfit), "Unfit");
}

}  // namespace
}  // namespace paceline::api

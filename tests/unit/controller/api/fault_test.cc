#include "controller/api/fault.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace paceline::api {
namespace {

template <typename Enum>
std::set<std::string> names_up_to(Enum last) {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(last); ++i) names.insert(name(static_cast<Enum>(i)));
  return names;
}

TEST(FaultTest, EachEnumeratorHasANameOfItsOwn) {
  EXPECT_EQ(names_up_to(RestartCause::kResized).size(), 19u);
  EXPECT_EQ(names_up_to(FaultKind::kDeleted).size(), 15u);
  EXPECT_EQ(names_up_to(ObservationKind::kRefused).size(), 20u);
  EXPECT_STREQ(name(RestartCause::kResized), "Resized");
  EXPECT_STREQ(name(FaultKind::kDeleted), "Deleted");
  EXPECT_STREQ(name(ObservationKind::kRefused), "Refused");
}

}  // namespace
}  // namespace paceline::api

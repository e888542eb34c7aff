#include "controller/api/requests.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace paceline::api {
namespace {

TEST(RequestsTest, MembersAreNamedByRoleAndIndex) {
  EXPECT_EQ(member_named("worker-2"), (Member{Role::kWorker, 2}));
  EXPECT_EQ(member_named("chief-0@2026-11-29T08:00:00Z"), (Member{Role::kChief, 0}));
  EXPECT_EQ(member_named("ps-11@"), (Member{Role::kServer, 11}));
  for (const char* const none : {"", "worker", "worker-", "worker--1", "worker-2a", "worker-99999999999",
                                 "@worker-2", "slave-0", "-1", "worker-1 @"})
    EXPECT_EQ(member_named(none), std::nullopt) << none;
}

TEST(RequestsTest, EachOutcomeHasANameOfItsOwn) {
  std::set<std::string> names;
  for (int i = 0; i <= static_cast<int>(RequestOutcome::kFailed); ++i)
    names.insert(name(static_cast<RequestOutcome>(i)));
  EXPECT_EQ(names, (std::set<std::string>{"UnderWay", "Done", "Refused", "Failed"}));
}

}  // namespace
}  // namespace paceline::api

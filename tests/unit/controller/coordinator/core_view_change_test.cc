#include "controller/coordinator/core_view_change.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text.h"

namespace paceline::coordinator {
namespace {

using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<ViewChanges::Member> named(const std::vector<std::string>& names) {
  std::vector<ViewChanges::Member> members;
  for (const std::string& name : names) members.push_back({name, name});
  return members;
}

v1::ViewBegin word(std::int64_t step) {
  v1::ViewBegin word;
  word.set_view_ns(4'000'000);
  word.set_state_ns(6'000'000);
  word.set_step_ns(3'000'000);
  word.set_step(step);
  return word;
}

ViewChanges after_a_first_view(const std::vector<std::string>& names) {
  ViewChanges changes;
  changes.formed(Generation{1}, named(names), 0);
  EXPECT_EQ(changes.begins(word(1)), std::nullopt);
  return changes;
}

TEST(ViewChangesTest, AFirstViewHasNoneBefore) {
  after_a_first_view({"chief-0", "worker-0"});
}

TEST(ViewChangesTest, AFirstViewMayFollowAnotherAttempt) {
  ViewChanges changes{120};
  changes.formed(Generation{4}, named({"chief-0", "worker-0"}), 0);
  const auto change = changes.begins(word(101));
  ASSERT_TRUE(change);
  EXPECT_TRUE(change->restarted);
  EXPECT_EQ(change->generation.value, 4U);
  EXPECT_THAT(change->came, IsEmpty());
  EXPECT_THAT(change->left, IsEmpty());
  EXPECT_EQ(change->steps_lost, 20);
  changes.formed(Generation{5}, named({"chief-0"}), 110);
  const auto next = changes.begins(word(111));
  EXPECT_FALSE(next->restarted);
  EXPECT_EQ(next->steps_lost, 0);
}

TEST(ViewChangesTest, AnAttemptMayBeginBeyondTheStepThatWasTold) {
  ViewChanges changes{120};
  changes.formed(Generation{1}, named({"chief-0"}), 0);
  EXPECT_EQ(changes.begins(word(131))->steps_lost, 0);
}

TEST(ViewChangesTest, ALossIsToldOnceWithItsTimes) {
  ViewChanges changes = after_a_first_view({"chief-0", "worker-0", "worker-1"});
  changes.member_lost("worker-0 froze", milliseconds(2900));
  changes.member_lost("worker-1 was killed", milliseconds(1));
  changes.formed(Generation{2}, named({"chief-0"}), 120);
  const auto change = changes.begins(word(121));
  ASSERT_TRUE(change);
  EXPECT_EQ(change->generation.value, 2U);
  EXPECT_THAT(change->came, IsEmpty());
  EXPECT_THAT(change->left, ElementsAre("worker-0", "worker-1"));
  EXPECT_EQ(change->message, "worker-0 froze; worker-1 was killed");
  EXPECT_EQ(change->noticed_seconds, 2.9);
  EXPECT_EQ(change->view_seconds, 0.004);
  EXPECT_EQ(change->state_seconds, 0.006);
  EXPECT_EQ(change->step_seconds, 0.003);
  EXPECT_EQ(change->step, 121);
  EXPECT_EQ(change->steps_lost, 0);
  EXPECT_EQ(changes.begins(word(121)), std::nullopt);
}

TEST(ViewChangesTest, AViewThatEndsInOrderLosesNobody) {
  ViewChanges changes = after_a_first_view({"chief-0"});
  changes.ends("worker-0 joins");
  changes.formed(Generation{2}, named({"chief-0", "worker-0"}), 10);
  const auto change = changes.begins(word(11));
  ASSERT_TRUE(change);
  EXPECT_THAT(change->came, ElementsAre("worker-0"));
  EXPECT_EQ(change->message, "worker-0 joins");
  EXPECT_EQ(change->noticed_seconds, std::nullopt);
}

TEST(ViewChangesTest, ALossWhileAViewEndsIsTheReason) {
  ViewChanges changes = after_a_first_view({"chief-0", "worker-0"});
  changes.ends("worker-1 joins");
  changes.member_lost("worker-0 was killed", {});
  changes.formed(Generation{2}, named({"chief-0"}), 10);
  EXPECT_EQ(changes.begins(word(11))->message, "worker-0 was killed");
}

TEST(ViewChangesTest, AWordThatComesWhenTheViewEndsAgainIsOfItsOwnCause) {
  ViewChanges changes = after_a_first_view({"chief-0", "worker-0"});
  changes.member_lost("worker-0 was killed", milliseconds(1));
  changes.formed(Generation{2}, named({"chief-0"}), 10);
  changes.ends("worker-1 joins");
  const auto loss = changes.begins(word(11));
  EXPECT_EQ(loss->message, "worker-0 was killed");
  EXPECT_EQ(loss->noticed_seconds, 0.001);
  changes.formed(Generation{3}, named({"chief-0", "worker-1"}), 12);
  const auto joined = changes.begins(word(13));
  EXPECT_EQ(joined->message, "worker-1 joins");
  EXPECT_EQ(joined->noticed_seconds, std::nullopt);
}

TEST(ViewChangesTest, AMemberWithoutAPlaceIsNamedAsOneThatStandsBy) {
  ViewChanges changes = after_a_first_view({"worker-0", "worker-1"});
  changes.ends("chief-0 joins");
  changes.stands_by("worker-1");
  changes.formed(Generation{2}, named({"chief-0", "worker-0"}), 10);
  const auto change = changes.begins(word(11));
  EXPECT_THAT(change->left, ElementsAre("worker-1"));
  EXPECT_EQ(change->message, "chief-0 joins; worker-1 stands by");
}

TEST(ViewChangesTest, AnotherMemberInTheSamePlaceHasCome) {
  ViewChanges changes;
  changes.formed(Generation{1}, {{"chief-0", "a"}, {"worker-0", "b"}}, 0);
  EXPECT_EQ(changes.begins(word(1)), std::nullopt);
  changes.formed(Generation{2}, {{"chief-0", "a"}, {"worker-0", "c"}}, 5);
  const auto change = changes.begins(word(6));
  EXPECT_THAT(change->came, ElementsAre("worker-0"));
  EXPECT_THAT(change->left, ElementsAre("worker-0"));
}

TEST(ViewChangesTest, AViewThatTakesNoStepIsNotTold) {
  ViewChanges changes = after_a_first_view({"chief-0", "worker-0", "worker-1"});
  changes.member_lost("worker-0 was killed", {});
  changes.formed(Generation{2}, named({"chief-0", "worker-1"}), 10);
  changes.member_lost("worker-1 was killed", {});
  changes.formed(Generation{3}, named({"chief-0"}), 10);
  const auto change = changes.begins(word(11));
  EXPECT_THAT(change->left, ElementsAre("worker-0", "worker-1"));
  EXPECT_EQ(change->message, "worker-0 was killed; worker-1 was killed");
}

TEST(ViewChangesTest, StepsThatAreTakenAgainAreCounted) {
  ViewChanges changes = after_a_first_view({"chief-0", "worker-0"});
  changes.formed(Generation{2}, named({"chief-0"}), 120);
  EXPECT_EQ(changes.begins(word(101))->steps_lost, 20);
}

TEST(ViewChangesTest, OfManyMembersTheFirstAreNamed) {
  std::vector<std::string> many = {"chief-0"};
  for (int i = 0; i < 20; ++i) many.push_back(str_cat("worker-", i));
  ViewChanges changes = after_a_first_view({"chief-0"});
  changes.formed(Generation{2}, named(many), 0);
  const auto change = changes.begins(word(1));
  ASSERT_EQ(change->came.size(), ViewChanges::kMostNamed);
  EXPECT_EQ(change->came.back(), "13 more");
}

}  // namespace
}  // namespace paceline::coordinator

#include "controller/coordinator/core_preflight.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace paceline::coordinator {
namespace {

using api::PreflightOutcome;
using api::PreflightPart;
using std::chrono::seconds;

bool are_all_in_one_group_each(const LinkGroups& groups, std::size_t members) {
  std::multiset<std::size_t> seen;
  for (const auto& group : groups) {
    if (group.size() < 2 || group.size() > 3) return false;
    seen.insert(group.begin(), group.end());
  }
  return seen.size() == members && std::set(seen.begin(), seen.end()).size() == members;
}

TEST(LinkGroupsTest, EachMemberHasOneGroupOfTwoOrThree) {
  for (std::size_t members = 2; members <= 65; ++members) {
    EXPECT_TRUE(are_all_in_one_group_each(neighbours(members), members)) << members;
    EXPECT_TRUE(are_all_in_one_group_each(slow_with_fast(std::vector<double>(members, 1)), members))
        << members;
  }
  EXPECT_TRUE(neighbours(1).empty());
  EXPECT_TRUE(slow_with_fast(std::vector<double>(1)).empty());
}

TEST(LinkGroupsTest, TheSlowestIsPairedWithTheFastest) {
  EXPECT_EQ(slow_with_fast(std::vector<double>{3, 1, kNotDone, 2}), (LinkGroups{{2, 1}, {0, 3}}));
  EXPECT_EQ(slow_with_fast(std::vector<double>{3, 1, 5, 2, 4}), (LinkGroups{{2, 1}, {4, 3, 0}}));
}

TEST(JudgeTest, OneThatComputesSlowlyIsFound) {
  const std::vector<Measured> members = {{1.0, 1}, {1.1, 1}, {2.5, 1}, {0.9, 1}};
  const std::vector<Unfit> unfit = judge(members, 2);
  ASSERT_EQ(unfit.size(), 1U);
  EXPECT_EQ(unfit[0].member, 2U);
  EXPECT_EQ(unfit[0].part, PreflightPart::kCompute);
  EXPECT_EQ(unfit[0].seconds, 2.5);
  EXPECT_EQ(unfit[0].typical, 1.0);
}

TEST(JudgeTest, TheWorstIsFirstAndSlowComputingExplainsSlowLinks) {
  const std::vector<Measured> members = {{1, 1}, {3, 9}, {1, 1}, {4, 1}, {1, 1}, {1, kNotDone}};
  const std::vector<Unfit> unfit = judge(members, 2);
  ASSERT_EQ(unfit.size(), 3U);
  EXPECT_EQ(unfit[0].member, 5U);
  EXPECT_EQ(unfit[0].part, PreflightPart::kLink);
  EXPECT_EQ(unfit[1].member, 3U);
  EXPECT_EQ(unfit[1].part, PreflightPart::kCompute);
  EXPECT_EQ(unfit[2].member, 1U);
  EXPECT_EQ(unfit[2].part, PreflightPart::kCompute);
  EXPECT_EQ(unfit[2].seconds, 3);
}

TEST(JudgeTest, OfTwoMembersTheSlowerOneIsFoundByComputingAlone) {
  EXPECT_TRUE(judge(std::vector<Measured>{{1, 1}, {1.5, 9}}, 2).empty());
  const std::vector<Unfit> unfit = judge(std::vector<Measured>{{1, 1}, {3, 1}}, 2);
  ASSERT_EQ(unfit.size(), 1U);
  EXPECT_EQ(unfit[0].member, 1U);
}

TEST(JudgeTest, NoMemberIsFoundWhereMostAreSlowOrNothingIsKnown) {
  EXPECT_TRUE(judge(std::vector<Measured>{{1, 1}, {2.5, 1}, {2.5, 1}}, 2).empty());
  EXPECT_TRUE(judge(std::vector<Measured>{{}, {}, {1, 1}}, 2).empty());
  EXPECT_TRUE(judge(std::vector<Measured>(4), 2).empty());
  EXPECT_TRUE(judge(std::vector<Measured>(1), 2).empty());
}

TEST(JudgeTest, AMinorityThatIsFarSlowerIsFoundWhole) {
  Rng rng(7, 1);
  for (int round = 0; round < 200; ++round) {
    const std::size_t size = 3 + rng.next_u64() % 20;
    std::vector<Measured> members(size);
    std::set<std::size_t> slow;
    for (Measured& each : members) each = {1 + 0.3 * rng.uniform(), 1 + 0.3 * rng.uniform()};
    for (std::size_t i = 0; i < (size - 1) / 2; ++i) {
      const std::size_t one = rng.next_u64() % size;
      slow.insert(one);
      (i % 2 == 0 ? members[one].compute_seconds : members[one].link_seconds) = 10 + rng.uniform();
    }
    std::set<std::size_t> found;
    for (const Unfit& each : judge(members, 3)) found.insert(each.member);
    EXPECT_EQ(found, slow) << "round " << round << " of " << size;
  }
}

TEST(MedianTest, OnlyTestsThatAreDoneCount) {
  EXPECT_EQ(median_done({3, kNotDone, 1}), 2);
  EXPECT_FALSE(median_done({kNotDone}).has_value());
}

// Members that answer at once, each by its own figures.
class PreflightCheckTest : public ::testing::Test {
 protected:
  static constexpr TimePoint kBegin{seconds(100)};

  void make(int members, PreflightRules rules) {
    check_ = std::make_unique<Preflight>(std::move(rules));
    for (int i = 0; i < members; ++i) add(i);
  }
  void add(int index) {
    v1::ViewMember peer;
    peer.set_role(v1::ROLE_WORKER);
    peer.set_index(static_cast<std::uint32_t>(index));
    peer.set_member_id(std::to_string(index));
    peer.set_host_id(one_host_ ? "" : std::to_string(index));
    members_.push_back({{++streams_}, std::move(peer), "host", true});
    figures_[streams_] = {1, 1};
  }
  Measured& figures(int index) { return figures_[members_[static_cast<std::size_t>(index)].stream.value]; }
  std::optional<api::Preflight> consider() {
    std::vector<Send> send;
    auto result = check_->consider(members_, most_, now_, send);
    for (const Send& each : send) sent_.push_back(each);
    return result;
  }
  void answer(const Send& to) {
    const Measured& its = figures_[to.stream.value];
    v1::PreflightResult result;
    result.set_number(to.message.preflight().number());
    if (its.compute_seconds < kNotDone) result.set_compute_seconds(its.compute_seconds);
    double link = kNotDone;  // of the better link; of each: its slower end's
    for (const v1::ViewMember& peer : to.message.preflight().group().members()) {
      for (const Preflight::Member& each : members_) {
        if (each.stream != to.stream && each.peer.member_id() == peer.member_id())
          link = std::min(link, std::max(its.link_seconds, figures_[each.stream.value].link_seconds));
      }
    }
    if (to.message.preflight().has_group() && link < kNotDone) result.set_link_seconds(link);
    if (link >= kNotDone) result.set_error("no link");
    check_->take(to.stream, result);
  }
  // Until there is a result.
  api::Preflight run() {
    for (int i = 0; i < 20; ++i) {
      if (auto result = consider()) return *result;
      now_ += std::chrono::milliseconds(500);
      for (const Send& each : std::exchange(sent_, {})) answer(each);
    }
    ADD_FAILURE() << "no result";
    return {};
  }

  std::unique_ptr<Preflight> check_;
  std::vector<Preflight::Member> members_;
  std::map<std::uint64_t, Measured> figures_;
  std::vector<Send> sent_;
  std::uint64_t streams_ = 0;
  int most_ = 4;
  bool one_host_ = false;
  TimePoint now_ = kBegin;
};

std::vector<Role> workers() {
  return {Role::kWorker};
}

TEST_F(PreflightCheckTest, FitMembersPass) {
  make(4, {});
  const api::Preflight result = run();
  EXPECT_EQ(result.outcome, PreflightOutcome::kPassed);
  EXPECT_EQ(result.members, 4);
  EXPECT_EQ(result.compute_ms, 1000);
  EXPECT_EQ(result.link_ms, 1000);
  EXPECT_EQ(result.seconds, 1.5);
  EXPECT_TRUE(check_->is_over());
}

TEST_F(PreflightCheckTest, ItBeginsOnceAllAreReady) {
  make(2, {});
  members_[1].ready = false;
  EXPECT_FALSE(consider());
  EXPECT_TRUE(sent_.empty());
  members_[1].ready = true;
  EXPECT_FALSE(consider());
  EXPECT_EQ(sent_.size(), 2U);
}

TEST_F(PreflightCheckTest, TheBadEndOfALinkIsFoundAndItsPeerIsCleared) {
  for (const int members : {3, 4, 5, 8}) {
    for (int bad = 0; bad < members; ++bad) {
      members_.clear();
      make(members, {});
      const bool dead = bad % 2 != 0;
      figures(bad).link_seconds = dead ? kNotDone : 5;
      const api::Preflight result = run();
      EXPECT_EQ(result.outcome, PreflightOutcome::kReported);
      ASSERT_EQ(result.unfit.size(), 1U) << bad << " of " << members;
      EXPECT_EQ(result.unfit[0].index, bad);
      EXPECT_EQ(result.unfit[0].part, PreflightPart::kLink);
      EXPECT_EQ(result.unfit[0].ms, dead ? 0 : 5000);
      EXPECT_EQ(result.unfit[0].factor, dead ? 0 : 5);
      EXPECT_FALSE(result.unfit[0].excluded);
    }
  }
}

TEST_F(PreflightCheckTest, AnExcludedMembersPlaceIsWaitedForAndAllAreCheckedAgain) {
  make(4, {.excludes = true, .most = 3, .replaced = workers()});
  figures(2).compute_seconds = 3;
  EXPECT_EQ(run().outcome, PreflightOutcome::kExcluded);
  members_.erase(members_.begin() + 2);
  EXPECT_FALSE(consider());
  EXPECT_FALSE(check_->is_over());
  EXPECT_TRUE(sent_.empty());
  add(2);
  const api::Preflight result = run();
  EXPECT_EQ(result.outcome, PreflightOutcome::kPassed);
  EXPECT_TRUE(check_->is_over());
}

TEST_F(PreflightCheckTest, TrainingBeginsWithoutANewcomerThatDoesNotCome) {
  make(4, {.excludes = true, .most = 3, .replaced = workers()});
  figures(2).compute_seconds = 3;
  EXPECT_EQ(run().outcome, PreflightOutcome::kExcluded);
  members_.erase(members_.begin() + 2);
  EXPECT_FALSE(consider());
  EXPECT_EQ(check_->due(), now_ + Preflight::kNewcomerTimeout);
  now_ = check_->due();
  EXPECT_FALSE(consider());
  EXPECT_TRUE(check_->is_over());
}

TEST_F(PreflightCheckTest, OneThatIsLeftAloneInACheckWaitsForAnother) {
  for (const bool comes : {true, false}) {
    members_.clear();
    make(2, {});
    EXPECT_FALSE(consider());
    members_.pop_back();
    EXPECT_FALSE(consider());
    EXPECT_FALSE(check_->is_over());
    if (comes) {
      sent_.clear();
      add(1);
      EXPECT_EQ(run().outcome, PreflightOutcome::kPassed);
    } else {
      now_ = check_->due();
      const auto result = consider();
      ASSERT_TRUE(result);
      EXPECT_EQ(result->outcome, PreflightOutcome::kFailed);
    }
    EXPECT_TRUE(check_->is_over());
  }
}

TEST_F(PreflightCheckTest, OneMemberIsComparedWithNobody) {
  make(1, {});
  most_ = 1;
  EXPECT_FALSE(consider());
  EXPECT_TRUE(check_->is_over());
}

TEST_F(PreflightCheckTest, LinksOfOneHostAreNotCompared) {
  one_host_ = true;
  make(4, {});
  figures(2).link_seconds = 5;
  EXPECT_EQ(run().outcome, PreflightOutcome::kPassed);
}

TEST_F(PreflightCheckTest, ALinkThatIsALittleLongerIsChance) {
  make(4, {});
  for (int i = 0; i < 4; ++i) figures(i).link_seconds = 0.0005;
  figures(2).link_seconds = 0.0014;
  EXPECT_EQ(run().outcome, PreflightOutcome::kPassed);
}

TEST_F(PreflightCheckTest, ASecondPodThatFailsInAPlaceStays) {
  make(4, {.excludes = true, .most = 3, .replaced = workers()});
  figures(2).compute_seconds = 3;
  EXPECT_EQ(run().outcome, PreflightOutcome::kExcluded);
  members_.erase(members_.begin() + 2);
  add(2);
  figures(3).compute_seconds = 3;
  const api::Preflight result = run();
  EXPECT_EQ(result.outcome, PreflightOutcome::kReported);
  ASSERT_EQ(result.unfit.size(), 1U);
  EXPECT_FALSE(result.unfit[0].why.empty());
}

TEST_F(PreflightCheckTest, NoMoreAreExcludedThanTheBudgetAllowsAndTheWorstFirst) {
  make(5, {.excludes = true, .most = 1, .replaced = workers()});
  figures(1).compute_seconds = 3;
  figures(4).compute_seconds = 9;
  const api::Preflight result = run();
  EXPECT_EQ(result.outcome, PreflightOutcome::kExcluded);
  ASSERT_EQ(result.unfit.size(), 2U);
  EXPECT_EQ(result.unfit[0].index, 4);
  EXPECT_TRUE(result.unfit[0].excluded);
  EXPECT_FALSE(result.unfit[1].excluded);
}

TEST_F(PreflightCheckTest, MembersOfARoleThatIsNotReplacedStay) {
  make(3, {.excludes = true, .most = 3, .replaced = {Role::kChief}});
  figures(0).compute_seconds = 9;
  EXPECT_EQ(run().outcome, PreflightOutcome::kReported);
}

TEST_F(PreflightCheckTest, AMemberThatDoesNotAnswerIsFoundInTheEnd) {
  make(4, {});
  for (int round = 1; round <= Preflight::kRounds; ++round) {
    EXPECT_FALSE(consider());
    for (const Send& each : std::exchange(sent_, {})) {
      if (each.stream != members_[3].stream) answer(each);
    }
    EXPECT_FALSE(consider()) << "it waits for the last one";
    EXPECT_EQ(check_->due(), kBegin + round * Preflight::kRoundTimeout);
    now_ = check_->due();
  }
  const auto result = consider();
  ASSERT_TRUE(result);
  ASSERT_EQ(result->unfit.size(), 1U);
  EXPECT_EQ(result->unfit[0].index, 3);
  EXPECT_EQ(result->unfit[0].ms, 0);
}

TEST_F(PreflightCheckTest, MembersThatDoNotKnowTheCheckAreLeftOutOfIt) {
  make(4, {.excludes = true, .most = 3, .replaced = workers()});
  members_[3].knows = members_[3].ready = false;
  const api::Preflight result = run();
  EXPECT_EQ(result.outcome, PreflightOutcome::kPassed);
  EXPECT_EQ(result.members, 3);
  EXPECT_EQ(result.left_out, 1);
  make(1, {});
  for (Preflight::Member& each : members_) each.knows = each.peer.index() == 1;
  const auto alone = consider();
  ASSERT_TRUE(alone);
  EXPECT_EQ(alone->outcome, PreflightOutcome::kFailed);
  EXPECT_EQ(alone->left_out, 4);
  EXPECT_TRUE(check_->is_over());
}

TEST_F(PreflightCheckTest, TrainingBeginsWhereNobodyCanBeTested) {
  make(3, {.excludes = true, .most = 3, .replaced = workers()});
  for (int i = 0; i < 3; ++i) figures(i) = {kNotDone, kNotDone};
  EXPECT_EQ(run().outcome, PreflightOutcome::kFailed);
  EXPECT_TRUE(check_->is_over());
}

TEST_F(PreflightCheckTest, TrainingBeginsWhereOneIsNeverReady) {
  make(2, {});
  members_[1].ready = false;
  EXPECT_FALSE(consider());
  now_ = check_->due();
  const auto result = consider();
  ASSERT_TRUE(result);
  EXPECT_EQ(result->outcome, PreflightOutcome::kFailed);
}

TEST_F(PreflightCheckTest, TrainingBeginsWhereMembersComeAndGo) {
  make(3, {});
  std::optional<api::Preflight> result;
  for (int i = 0; i <= Preflight::kMostChecks && !result; ++i) {
    result = consider();
    members_.erase(members_.begin());
    add(i);
  }
  ASSERT_TRUE(result);
  EXPECT_EQ(result->outcome, PreflightOutcome::kFailed);
}

TEST_F(PreflightCheckTest, AnswersToEarlierMessagesAndSecondOnesDoNotCount) {
  make(2, {});
  EXPECT_FALSE(consider());
  const Send first = sent_[0];
  answer(first);
  figures(0).compute_seconds = 50;
  answer(first);
  v1::PreflightResult old;
  old.set_number(0);
  check_->take(members_[1].stream, old);
  EXPECT_FALSE(consider());
  answer(sent_[1]);
  sent_.clear();
  figures(0).compute_seconds = 1;
  EXPECT_EQ(run().outcome, PreflightOutcome::kPassed);
}

TEST_F(PreflightCheckTest, AbsurdFiguresAreNoFigures) {
  make(2, {});
  figures(0).compute_seconds = -1;
  figures(1).compute_seconds = 1e9;
  EXPECT_EQ(run().outcome, PreflightOutcome::kFailed);
}

}  // namespace
}  // namespace paceline::coordinator

// Views that follow each other, and the links that stay.

#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "conformance_world.h"
#include "runtime/collective/fabric.h"

namespace paceline::collective {
namespace {

using namespace std::chrono_literals;

class KeptLinksTest : public ::testing::TestWithParam<Medium> {
 protected:
  // Three members, of which views are made.
  void SetUp() override {
    for (const int each : {0, 1, 2}) start(each);
  }
  // A process of its own, in place of the one before.
  void start(int number) {
    auto fabric = Fabric::create({.arena_bytes = std::size_t{1} << 20}, clock_);
    ASSERT_TRUE(fabric.ok()) << fabric.status();
    member(number).fabric = *std::move(fabric);
  }

  // The next view, of these members in this order; those that are in it have let go of the one before.
  void view(const std::vector<int>& ranks) {
    ++generation_;
    const Group group = group_of(ranks, static_cast<std::uint8_t>(generation_));
    run_ranks(static_cast<int>(ranks.size()), [&](int rank) {
      Member& mine = member(ranks[static_cast<std::size_t>(rank)]);
      mine.links.reset();
      Group own = group;
      own.rank = rank;
      auto links = mine.fabric->connect(own, Deadline::after(clock_.now(), 60s));
      ASSERT_TRUE(links.ok()) << links.status();
      mine.links = *std::move(links);
      // More than a frame, so that all channels carry some.
      std::vector<float> numbers(300'000, static_cast<float>(rank + 1));
      const absl::Status summed = mine.links->all_reduce(numbers.data(), numbers.size(), DType::kF32,
                                                         ReduceOp::kSum, Deadline::after(clock_.now(), 60s));
      ASSERT_TRUE(summed.ok()) << summed;
      const auto world = static_cast<float>(ranks.size());
      EXPECT_EQ(numbers, std::vector<float>(numbers.size(), world * (world + 1) / 2));
    });
  }
  // A newcomer meets members of the present view, as it does to get their state.
  void meet_ahead(int newcomer, const std::vector<int>& sources) {
    std::vector<int> ranks = {newcomer};
    ranks.insert(ranks.end(), sources.begin(), sources.end());
    const Group group = group_of(ranks, 'k');
    std::vector<int> others(sources.size());
    std::iota(others.begin(), others.end(), 1);
    const std::vector<int> first = {0};
    run_ranks(static_cast<int>(ranks.size()), [&](int rank) {
      Group own = group;
      own.rank = rank;
      auto links = member(ranks[static_cast<std::size_t>(rank)])
                       .fabric->meet(own, rank == 0 ? others : first, 1, Deadline::after(clock_.now(), 60s),
                                     Fabric::NextView::kLinked);
      ASSERT_TRUE(links.ok()) << links.status();
      for (const PeerLink& each : *links) EXPECT_EQ(each.sockets.size(), 1u);
    });
  }
  int kept(int number) { return member(number).links->counters().kept_links; }

  struct Member {
    std::unique_ptr<Fabric> fabric;  // outlives its links
    std::unique_ptr<Communicator> links;
  };
  Member& member(int number) { return members_[static_cast<std::size_t>(number)]; }
  Communicator& links(int number) { return *member(number).links; }

 private:
  Group group_of(const std::vector<int>& ranks, std::uint8_t key) {
    Group group;
    group.generation = Generation{generation_};
    group.transport =
        GetParam() == Medium::kSharedMemory ? TransportKind::kSharedMemory : TransportKind::kTcp;
    group.encrypted = GetParam() == Medium::kTls;
    group.key.fill(key);
    for (const int each : ranks)
      group.members.push_back({"worker-" + std::to_string(each), member(each).fabric->address()});
    return group;
  }

  const SystemClock clock_{};
  std::uint64_t generation_ = 0;
  std::vector<Member> members_{3};
};

TEST_P(KeptLinksTest, MembersOfBothViewsKeepTheirLinks) {
  view({0, 1});
  EXPECT_EQ(kept(0) + kept(1), 0);
  for (const int each : {0, 1}) links(each).retire();
  view({0, 1, 2});
  EXPECT_EQ(kept(0), 1);
  EXPECT_EQ(kept(1), 1);
  EXPECT_EQ(kept(2), 0) << "the newcomer's links are new";
  for (const int each : {0, 1, 2}) links(each).retire();
  view({2, 1}) /* other ranks */;
  EXPECT_EQ(kept(1), 1);
  EXPECT_EQ(kept(2), 1);
}

TEST_P(KeptLinksTest, RetiredViewIsClosedAndItsPeersHearNothing) {
  view({0, 1});
  links(0).retire();
  EXPECT_EQ(links(0).closed().code(), absl::StatusCode::kAborted);
  EXPECT_EQ(links(0).barrier(Deadline::after(TimePoint::max() - 1s, 0s)).code(), absl::StatusCode::kAborted);
  EXPECT_TRUE(links(1).closed().ok());
  links(0).close(absl::AbortedError("a newer view has come"));
  links(1).retire();
  view({0, 1});
  EXPECT_EQ(kept(0), 1);
}

TEST_P(KeptLinksTest, LinksOfAnAbandonedStepAreMadeAnew) {
  for (const int fails : {0, 1}) {
    view({0, 1});
    links(fails).close(absl::AbortedError("a step was abandoned"));
    links(fails).retire();
    links(1 - fails).retire();
    view({0, 1});
    EXPECT_EQ(kept(0) + kept(1), 0);
    for (const int each : {0, 1}) links(each).retire();
  }
}

TEST_P(KeptLinksTest, MemberThatWasLeftOutOnceComesByNewLinks) {
  view({0, 1, 2});
  for (const int each : {0, 1, 2}) links(each).retire();
  view({0, 1});
  for (const int each : {0, 1}) links(each).retire();
  view({0, 1, 2});
  EXPECT_EQ(kept(0), 1);
  EXPECT_EQ(kept(2), 0);
}

TEST_P(KeptLinksTest, TcpLinksTellHowTheyAreUsed) {
  view({0, 1, 2});
  const std::vector<Link> told = links(1).links();
  EXPECT_EQ(told.empty(), GetParam() == Medium::kSharedMemory);
  for (const Link& each : told) {
    EXPECT_TRUE(each.rank == 0 || each.rank == 2);
    EXPECT_GT(each.use.bytes, 0U);
  }
}

TEST_P(KeptLinksTest, NewcomerIsLinkedBeforeItsView) {
  view({0, 1});
  meet_ahead(2, {1, 0});
  for (const int each : {0, 1}) links(each).retire();
  view({2, 0, 1});
  for (const int each : {0, 1, 2}) EXPECT_EQ(kept(each), 2) << each;
}

TEST_P(KeptLinksTest, NewcomersLinksOutliveAStepThatIsAbandoned) {
  view({0, 1});
  meet_ahead(2, {0, 1});
  links(1).close(absl::AbortedError("a step was abandoned"));
  links(0).retire();
  view({0, 1, 2});
  EXPECT_EQ(kept(0), 1);
  EXPECT_EQ(kept(1), 1);
  EXPECT_EQ(kept(2), 2);
}

TEST_P(KeptLinksTest, LinksOfANewcomerThatIsLeftOutEnd) {
  view({0, 1});
  meet_ahead(2, {0, 1});
  for (const int each : {0, 1}) links(each).retire();
  view({0, 1});
  EXPECT_EQ(kept(0), 1);
  for (const int each : {0, 1}) links(each).retire();
  view({0, 1, 2});
  EXPECT_EQ(kept(0), 1);
  EXPECT_EQ(kept(2), 0);
}

// A newcomer that fails again and again does so within one view of the others.
TEST_P(KeptLinksTest, LinksOfNewcomersThatAreGoneEnd) {
  view({0, 1});
  const auto descriptors = [] {
    using Each = std::filesystem::directory_iterator;
    return std::distance(Each("/proc/self/fd"), Each());
  };
  std::ptrdiff_t before = 0;
  for (int newcomer = 0; newcomer < 4; ++newcomer) {
    meet_ahead(2, {0, 1});
    start(2);
    if (newcomer == 0) before = descriptors();
  }
  EXPECT_EQ(descriptors(), before);
  meet_ahead(2, {0, 1});
  for (const int each : {0, 1}) links(each).retire();
  view({0, 1, 2});
  EXPECT_EQ(kept(0), 2);
}

INSTANTIATE_TEST_SUITE_P(Links, KeptLinksTest,
                         ::testing::Values(Medium::kSharedMemory, Medium::kTcp, Medium::kTls),
                         [](const auto& info) { return medium_name(info.param); });

}  // namespace
}  // namespace paceline::collective

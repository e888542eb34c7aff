#include "runtime/transport/shared_group.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <thread>
#include <vector>

namespace paceline::transport {
namespace {

class SharedGroupTest : public ::testing::Test {
 protected:
  std::vector<SharedGroup> make(int world) {
    const std::size_t bytes = SharedGroup::bytes_needed(world);
    page_.reset(static_cast<std::byte*>(std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096)));
    SharedGroup::format({page_.get(), bytes}, world);
    std::vector<SharedGroup> ranks;
    for (int r = 0; r < world; ++r)
      ranks.push_back(*SharedGroup::attach({page_.get(), bytes}, world, r, SpinPolicy{10}));
    return ranks;
  }
  Deadline soon() const { return Deadline::after(clock_.now(), std::chrono::milliseconds(20)); }
  Deadline late() const { return Deadline::after(clock_.now(), std::chrono::seconds(60)); }

  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::unique_ptr<std::byte, Free> page_;
  SystemClock clock_;
};

TEST_F(SharedGroupTest, ThePhaseEndsWithTheLastArrival) {
  auto ranks = make(3);
  ranks[0].arrive();
  ranks[2].arrive();
  EXPECT_FALSE(ranks[0].all_arrived());
  EXPECT_EQ(ranks[0].first_missing(), 1);
  EXPECT_EQ(ranks[0].wait_for_all(clock_, soon()), SharedGroup::Outcome::kExpired);
  ranks[1].arrive();
  for (SharedGroup& rank : ranks) EXPECT_EQ(rank.wait_for_all(clock_, soon()), SharedGroup::Outcome::kAll);
}

TEST_F(SharedGroupTest, ManyPhasesFromThreads) {
  constexpr int kWorld = 5, kPhases = 2000;
  auto ranks = make(kWorld);
  std::vector<std::jthread> threads;
  for (SharedGroup& rank : ranks) {
    threads.emplace_back([&rank, this] {
      for (int phase = 0; phase < kPhases; ++phase) {
        const int parity = rank.next_parity();
        rank.publication(rank.rank(), parity).count = static_cast<std::uint64_t>(phase);
        rank.arrive();
        ASSERT_EQ(rank.wait_for_all(clock_, late()), SharedGroup::Outcome::kAll);
        for (int r = 0; r < kWorld; ++r)
          ASSERT_EQ(rank.publication(r, parity).count, static_cast<std::uint64_t>(phase));
      }
    });
  }
}

TEST_F(SharedGroupTest, AbortWakesSleepersAndTheFirstFaultStays) {
  auto ranks = make(2);
  std::jthread sleeper([&] {
    ranks[0].arrive();
    EXPECT_EQ(ranks[0].wait_for_all(clock_, late()), SharedGroup::Outcome::kEnded);
  });
  ranks[1].abort({1, absl::StatusCode::kUnavailable, "first"});
  ranks[1].abort({0, absl::StatusCode::kInternal, "second"});
  sleeper.join();
  const auto fault = ranks[0].fault();
  ASSERT_TRUE(fault.has_value());
  EXPECT_EQ(fault->blamed_rank, 1);
  EXPECT_EQ(fault->code, absl::StatusCode::kUnavailable);
  EXPECT_EQ(fault->text, "first");
}

TEST_F(SharedGroupTest, CompleteRoundStaysCompleteAfterALeave) {
  auto ranks = make(3);
  for (SharedGroup& rank : ranks) rank.arrive();
  ranks[2].leave(2);
  EXPECT_EQ(ranks[0].wait_for_all(clock_, soon()), SharedGroup::Outcome::kAll);
  ranks[0].arrive();
  EXPECT_EQ(ranks[0].wait_for_all(clock_, late()), SharedGroup::Outcome::kEnded);
  EXPECT_EQ(ranks[0].first_missing(), 2) << "who left explains more than who is late";
  EXPECT_FALSE(ranks[0].fault().has_value());
}

TEST_F(SharedGroupTest, ALongFaultIsCut) {
  auto ranks = make(1);
  ranks[0].abort({-1, absl::StatusCode::kUnavailable, std::string(10'000, 'x')});
  EXPECT_EQ(ranks[0].fault()->text, std::string(400, 'x'));
}

TEST_F(SharedGroupTest, AnotherWorldsPageIsRefused) {
  make(2);
  const std::size_t bytes = SharedGroup::bytes_needed(2);
  EXPECT_FALSE(SharedGroup::attach({page_.get(), bytes}, 3, 0, {}).ok());
  EXPECT_FALSE(SharedGroup::attach({page_.get(), bytes}, 1, 0, {}).ok());
}

}  // namespace
}  // namespace paceline::transport

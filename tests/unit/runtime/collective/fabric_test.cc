#include "runtime/collective/fabric.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string_view>
#include <thread>

namespace paceline::collective {
namespace {

constexpr std::size_t kBytes = 100;

class TwoFabrics : public ::testing::Test {
 protected:
  void SetUp() override {
    for (auto& fabric : fabrics_) {
      auto made = Fabric::create({.arena_bytes = std::size_t{1} << 20}, clock_);
      ASSERT_TRUE(made.ok()) << made.status();
      fabric = *std::move(made);
    }
  }
  // What rank 1 has of rank 0 in this generation.
  PeerLink meet(std::uint64_t generation) {
    Group group;
    group.generation = Generation{generation};
    group.transport = TransportKind::kSharedMemory;
    group.members = {{"m0", fabrics_[0]->address()}, {"m1", fabrics_[1]->address()}};
    std::vector<PeerLink> links[2];
    {
      std::vector<std::jthread> threads;
      for (int rank = 0; rank < 2; ++rank) {
        threads.emplace_back([&, rank, mine = group]() mutable {
          mine.rank = rank;
          const int peers[] = {1 - rank};
          auto met =
              fabrics_[rank]->meet(mine, peers, 1, Deadline::after(clock_.now(), std::chrono::seconds(60)));
          ASSERT_TRUE(met.ok()) << met.status();
          links[rank] = *std::move(met);
        });
      }
    }
    return links[1].empty() ? PeerLink{} : std::move(links[1][0]);
  }
  static std::string_view text(const PeerLink& link) {
    return {reinterpret_cast<const char*>(link.arena.memory().data()), kBytes};
  }

  const SystemClock clock_{};
  std::unique_ptr<Fabric> fabrics_[2];
};

TEST_F(TwoFabrics, AnArenaThatIsRenewedIsEmptyAndPeersKeepTheOldOne) {
  const auto write = [&](char letter) {
    const auto memory = fabrics_[0]->arena().allocate(kBytes);
    ASSERT_TRUE(memory.ok()) << memory.status();
    EXPECT_EQ((*memory)[0], std::byte{0}) << "zeroed";
    std::memset(memory->data(), letter, kBytes);
  };
  write('o');
  const PeerLink first = meet(1);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(text(first), std::string(kBytes, 'o'));
  const std::size_t capacity = fabrics_[0]->arena().capacity();
  ASSERT_LT(fabrics_[0]->arena().left(), capacity);
  ASSERT_TRUE(fabrics_[0]->renew_arena().ok());
  EXPECT_EQ(fabrics_[0]->arena().left(), capacity);
  write('n');
  const PeerLink second = meet(2);
  ASSERT_FALSE(HasFatalFailure());
  EXPECT_EQ(text(second), std::string(kBytes, 'n'));
  EXPECT_EQ(text(first), std::string(kBytes, 'o'));
}

}  // namespace
}  // namespace paceline::collective

#include "runtime/pserver/slab.h"

#include <gtest/gtest.h>

#include "base/rng.h"
#include "tests/support/assert_ok.h"

namespace paceline::pserver {
namespace {

// Whoever reads sees the version that he was lent until he gives it back, for every order.
TEST(Slab, LentBufferIsNotWritten) {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    SCOPED_TRACE(seed);
    Rng rng(seed, 0);
    auto arena = transport::Arena::create(std::size_t{1} << 20);
    ASSERT_TRUE(arena.ok()) << arena.status();
    const int workers = static_cast<int>(1 + rng.below(5));
    Slab slab(**arena, 10, workers);
    ASSERT_TRUE(slab.open().ok());
    std::vector<std::span<float>> reads(static_cast<std::size_t>(workers));
    std::vector<float> values(static_cast<std::size_t>(workers));
    float version = 0;
    for (int k = 0; k < 300; ++k) {
      const auto w = static_cast<std::size_t>(rng.below(static_cast<std::uint64_t>(workers)));
      switch (rng.below(4)) {
        case 0: {
          PL_ASSERT_OK(next, slab.next());
          std::fill(next->begin(), next->end(), ++version);
          slab.next_is_made();
          break;
        }
        case 1:
          slab.lend(static_cast<int>(w));
          reads[w] = slab.weights();
          values[w] = version;
          break;
        case 2: {
          PL_ASSERT_OK(next, slab.next());
          slab.lend_next(static_cast<int>(w));  // and reads it once it is made
          EXPECT_EQ(slab.next_offset(), slab.offset_of(*next));
          std::fill(next->begin(), next->end(), ++version);
          slab.next_is_made();
          reads[w] = *next;
          values[w] = version;
          break;
        }
        default:
          slab.give_back(static_cast<int>(w));
          reads[w] = {};
      }
      EXPECT_EQ(slab.weights()[9], version);
      for (std::size_t each = 0; each < reads.size(); ++each) {
        EXPECT_EQ(slab.borrows(static_cast<int>(each)), !reads[each].empty());
        if (!reads[each].empty()) {
          ASSERT_EQ(reads[each][3], values[each]);
        }
      }
    }
    EXPECT_LE(slab.buffers(), static_cast<std::size_t>(workers) + 1);
  }
}

TEST(Slab, WritesInPlaceWhereNobodyReads) {
  auto arena = transport::Arena::create(std::size_t{1} << 20);
  ASSERT_TRUE(arena.ok()) << arena.status();
  Slab slab(**arena, 10, 3);
  ASSERT_TRUE(slab.open().ok());
  for (int k = 0; k < 20; ++k) {
    for (int w = 0; w < 3; ++w) slab.lend(w);
    for (int w = 0; w < 3; ++w) slab.give_back(w);
    PL_ASSERT_OK(next, slab.next());
    EXPECT_EQ(next->data(), slab.weights().data());
    slab.next_is_made();
  }
  EXPECT_EQ(slab.buffers(), 1u);
}

TEST(Slab, SaysWhenTheArenaIsFull) {
  auto arena = transport::Arena::create(std::size_t{8} << 10);
  ASSERT_TRUE(arena.ok()) << arena.status();
  Slab slab(**arena, 1024, 3);
  ASSERT_TRUE(slab.open().ok());
  EXPECT_TRUE(slab.of_worker(1, Slab::Use::kGradient).ok());
  EXPECT_TRUE(slab.of_worker(1, Slab::Use::kGradient).ok()) << "the same again";
  EXPECT_EQ(slab.of_worker(2, Slab::Use::kKept).status().code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace paceline::pserver

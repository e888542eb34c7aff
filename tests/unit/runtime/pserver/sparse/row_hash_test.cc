#include "runtime/pserver/sparse/row_hash.h"

#include <gtest/gtest.h>

#include <vector>

namespace paceline::pserver::sparse {
namespace {

// Written down: checkpoints and members of one job rely on it.
TEST(RowHash, IsTheSameForEver) {
  EXPECT_EQ(hash_of(0), 0u);
  EXPECT_EQ(hash_of(1), 0x5692161d100b05e5u);
  EXPECT_EQ(server_of(1, 2), 0);
  EXPECT_EQ(server_of(1, 3), 1);
  EXPECT_EQ(server_of(0xffffffffffffffff, 7), server_of_hash(hash_of(0xffffffffffffffff), 7));
}

TEST(RowHash, ServersGetEqualSharesOfPlainAndOfSpacedIds) {
  for (const RowId spacing : {RowId{1}, RowId{4096}, RowId{1} << 40}) {
    for (const int servers : {1, 2, 3, 7}) {
      std::vector<int> counts(static_cast<std::size_t>(servers));
      constexpr int kRows = 100'000;
      for (RowId k = 0; k < kRows; ++k) {
        const int server = server_of(k * spacing, servers);
        ASSERT_GE(server, 0);
        ASSERT_LT(server, servers);
        ++counts[static_cast<std::size_t>(server)];
      }
      for (const int count : counts) EXPECT_NEAR(count, kRows / servers, 800) << spacing << " " << servers;
    }
  }
}

}  // namespace
}  // namespace paceline::pserver::sparse

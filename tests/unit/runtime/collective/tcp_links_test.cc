// What the kernel is told of links.

#include <gtest/gtest.h>

#include <set>

#include "conformance_world.h"
#include "tests/support/tcp_limits.h"

namespace paceline::collective {
namespace {

// Who computes or writes a checkpoint reads nothing, for as long as the deadline allows: to the kernel that
// would be a peer that does not answer.
TEST(TcpLinks, OnlyControlEndsWhereNobodyReads) {
  World world(Medium::kTcp, 2);
  EXPECT_EQ(unanswered_limits(), (std::multiset<int>{0, 0, 0, 0, 10'000, 10'000}))
      << "one for control, two for data, of both ends";
}

}  // namespace
}  // namespace paceline::collective

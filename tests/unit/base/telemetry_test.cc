#include "base/telemetry.h"

#include <gtest/gtest.h>

#include "tests/support/filled.h"

namespace paceline {
namespace {

TEST(TelemetryCountsTest, OnlyCountsHoldOfAMemberThatHasEnded) {
  const auto member = filled<MemberTelemetry>();
  const MemberTelemetry counts = counts_of(member);
  EXPECT_EQ(counts.step_ms, 0);
  EXPECT_EQ(counts.bytes_sent, member.bytes_sent);
  EXPECT_EQ(counts.staleness, member.staleness);
  EXPECT_EQ(counts.server->rows, member.server->rows);
  EXPECT_EQ(counts.server->load + counts.server->bytes_per_second, 0);
  EXPECT_EQ(counts.server->queue, 0);
  const GpuTelemetry& gpu = *member.gpu;
  EXPECT_EQ(counts.gpu, (GpuTelemetry{.name = gpu.name,
                                      .uuid = gpu.uuid,
                                      .index = gpu.index,
                                      .corrected_ecc_errors = gpu.corrected_ecc_errors,
                                      .uncorrected_ecc_errors = gpu.uncorrected_ecc_errors,
                                      .pcie_replays = gpu.pcie_replays,
                                      .xids = gpu.xids,
                                      .last_xid = gpu.last_xid}));
  EXPECT_EQ(counts_of(MemberTelemetry()), MemberTelemetry());
}

}  // namespace
}  // namespace paceline

#include "controller/diagnosis/root_cause.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "base/rng.h"

namespace paceline::diagnosis {
namespace {

using std::chrono::milliseconds;
using enum api::ObservationKind;

// Against every mix of evidence.
TEST(RootCauseTest, HardEvidenceOutweighsAndTheEarliestIsTheRoot) {
  Rng rng(7, 1);
  for (int round = 0; round < 5000; ++round) {
    std::vector<Evidence> evidence;
    std::vector<PeerReport> reports;
    std::optional<std::pair<TimePoint, int>> earliest;
    for (int slot = 0; slot < 5; ++slot) {
      if (rng.below(3) != 0) continue;
      const bool soft = rng.below(3) == 0;
      const TimePoint since{milliseconds(rng.below(4))};
      evidence.push_back({slot, {soft ? kSaid : kStreamEnded, "seen"}, since, soft});
      if (!soft && (!earliest || std::pair(since, slot) < *earliest)) earliest = {since, slot};
    }
    for (int slot = 0; slot < 5; ++slot) {
      const int peer = static_cast<int>(rng.below(5));
      if (rng.below(2) == 0 && peer != slot) reports.push_back({slot, peer, "lost"});
    }
    const auto root = find_root_cause(evidence, reports, {});
    ASSERT_EQ(root.has_value(), !evidence.empty() || !reports.empty());
    if (!root) continue;
    if (earliest) {
      EXPECT_EQ(root->slot, earliest->second) << "round " << round;
    }
    EXPECT_EQ(std::count(root->victims.begin(), root->victims.end(), root->slot), 0);
  }
}

TEST(RootCauseTest, OneReportIsWorthLessThanTheReportersOwnFailure) {
  const std::vector<Evidence> left{{0, {kSaid, "its peer is gone"}, TimePoint(milliseconds(1)), true}};
  const std::vector<PeerReport> one{{0, 1, "reset"}};
  EXPECT_EQ(find_root_cause(left, one, {})->slot, 0);
  const std::vector<PeerReport> two{{0, 1, "reset"}, {2, 1, "reset"}};
  const RootCause root = *find_root_cause(left, two, {});
  EXPECT_EQ(root.slot, 1);
  EXPECT_EQ(root.seen.kind, kPeerReports);
  EXPECT_EQ(root.victims, (std::vector<int>{0, 2}));
}

TEST(RootCauseTest, AllFollowOnlyWhereEveryoneDoes) {
  std::vector<Evidence> evidence;
  EXPECT_FALSE(all_follow(evidence));
  evidence.push_back({0, {kStopped, ""}, {}, true, true});
  EXPECT_TRUE(all_follow(evidence));
  EXPECT_FALSE(has_hard(evidence));
  evidence.push_back({1, {kStreamEnded, ""}, {}});
  EXPECT_FALSE(all_follow(evidence));
  EXPECT_TRUE(has_hard(evidence));
}

}  // namespace
}  // namespace paceline::diagnosis

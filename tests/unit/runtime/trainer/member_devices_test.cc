#include "runtime/trainer/member_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace paceline::trainer {
namespace {

MemberDevice device(std::string_view name, bool exchanges = true) {
  return member_device(true, exchanges, name);
}
constexpr char kInstall[] = "install NCCL";

TEST(WhyByHosts, NotWhereEachMemberHasADeviceThatExchanges) {
  EXPECT_EQ(why_by_hosts(std::vector{device("GPU-1"), device("GPU-2"), device("")}, 0, ""), "");
  EXPECT_EQ(why_by_hosts(std::vector{device(""), device("")}, 1, ""), "");
}

TEST(WhyByHosts, ADeviceOfTwoComesBeforeWhatCouldBeInstalled) {
  for (const bool exchanges : {true, false}) {
    const std::vector ranks{device("GPU-1"), device("GPU-2", exchanges), device("GPU-1", exchanges)};
    for (int rank = 0; rank < 3; ++rank) {
      EXPECT_EQ(why_by_hosts(ranks, rank, kInstall),
                "rank 0 and rank 2 have the same device, and each needs one of its own");
    }
  }
}

TEST(WhyByHosts, WhoLacksSomethingSaysWhatAndOthersSayWho) {
  const std::vector ranks{device("GPU-1"), device("GPU-2", false)};
  EXPECT_EQ(why_by_hosts(ranks, 1, kInstall), kInstall);
  for (int rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(why_by_hosts(ranks, rank, ""),
              "rank 1 has nothing that sends them from its device; its log says why");
  }
}

TEST(MemberDevices, NamesCountAsFarAsTheyGo) {
  const std::string uuid = "GPU-00102030-4050-6070-8090-a0b0c0d0e0f";
  EXPECT_NE(device(uuid + "0").name, device(uuid + "1").name);
  EXPECT_EQ(device(std::string(48, 'x') + "0").name, device(std::string(48, 'x') + "1").name);
}

TEST(WhyStateOnHosts, IsTheFirstThatComputesOnProcessors) {
  EXPECT_EQ(why_state_on_hosts(std::vector{device("GPU-1"), device("GPU-1")}), "");
  EXPECT_EQ(why_state_on_hosts(std::vector{device("GPU-1"), member_device(false, false, ""),
                                           member_device(false, false, "")}),
            "rank 1 computes on processors");
}

TEST(MemberDevices, AreCountedByName) {
  const MemberDevice ranks[] = {member_device(true, true, "GPU-a"), member_device(false, false, ""),
                                member_device(true, true, "GPU-b"), member_device(true, false, "GPU-a"),
                                member_device(false, false, "")};
  EXPECT_EQ(members_on_device(ranks, 0), 2);
  EXPECT_EQ(members_on_device(ranks, 1), 0);
  EXPECT_EQ(members_on_device(ranks, 2), 1);
}

}  // namespace
}  // namespace paceline::trainer

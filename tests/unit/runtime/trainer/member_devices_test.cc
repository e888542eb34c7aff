#include "runtime/trainer/member_devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/text.h"
#include "runtime/collective/fault.h"

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

TEST(WhyByHosts, LackIsNamedByItsRankAndTheRankByOthers) {
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

TEST(WhyNotOpened, FailureIsNamedByItsRankAndTheRankByOthers) {
  const absl::Status failed = absl::InternalError("no shared memory"),
                     refused = absl::FailedPreconditionError("versions differ");
  const absl::Status ended = collective::with_faulty_rank(absl::UnavailableError("rank 2 left"), 2);
  EXPECT_EQ(opening_of(absl::OkStatus(), 1), Opening::kOpened);
  EXPECT_EQ(opening_of(failed, 1), Opening::kFailed);
  EXPECT_EQ(opening_of(refused, 1), Opening::kRefused);
  EXPECT_EQ(opening_of(ended, 1), Opening::kEnded);
  EXPECT_EQ(opening_of(ended, 2), Opening::kFailed);
  constexpr char kAnothers[] = " could not open what sends them from device to device; its log says why";
  const struct {
    std::vector<absl::Status> ranks;
    std::vector<std::string> why;
    bool fault;
  } cases[] = {
      {{{}, {}, {}}, {"", "", ""}, false},
      {{ended, {}, failed},
       {str_cat("rank 2 (worker-1)", kAnothers), str_cat("rank 2 (worker-1)", kAnothers), "no shared memory"},
       true},
      {{failed, failed, {}},
       {"no shared memory", "no shared memory", str_cat("rank 0 (chief-0)", kAnothers)},
       true},
      {{ended, ended, {}}, {"rank 2 left", "rank 2 left", str_cat("rank 0 (chief-0)", kAnothers)}, true},
      {{refused, refused, refused}, {"versions differ", "versions differ", "versions differ"}, false},
      {{refused, failed, {}},
       {"versions differ", "no shared memory", str_cat("rank 1 (worker-0)", kAnothers)},
       true},
  };
  for (const auto& c : cases) {
    collective::Group group;
    group.members = {{"chief-0", {}}, {"worker-0", {}}, {"worker-1", {}}};
    std::vector<Opening> told;
    for (int rank = 0; rank < 3; ++rank)
      told.push_back(opening_of(c.ranks[static_cast<std::size_t>(rank)], rank));
    for (group.rank = 0; group.rank < 3; ++group.rank) {
      const auto r = static_cast<std::size_t>(group.rank);
      const NotOpened not_opened = why_not_opened(told, group, c.ranks[r]);
      EXPECT_EQ(not_opened.why, c.why[r]);
      EXPECT_EQ(not_opened.fault, c.fault);
    }
  }
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

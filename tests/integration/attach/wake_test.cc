// What wakes the reconciler when members say it to their job's coordinator, over real gRPC.

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "base/guarded.h"
#include "base/text.h"
#include "controller/reconcile/coordinators.h"
#include "runtime/member/membership.h"
#include "runtime/member/stream.h"
#include "tests/support/fake_cluster.h"
#include "tests/support/small_job.h"

namespace paceline {
namespace {

using namespace std::chrono_literals;

constexpr Duration kWakeLimit = 20s;  // only a broken test waits so long
constexpr char kKey[] = "default/digits";

// What other controllers must know is written at once: the status is looked at as soon as it is said.
TEST(WakeTest, AMemberThatHasFinishedIsAReasonToLook) {
  const SystemClock clock;
  FakeCluster cluster(clock);
  Guarded<int> looks{0};
  const auto wait_for_looks = [&looks](int count) {
    bool came = false;
    looks.lock_when([count](int n) { return n >= count; }, kWakeLimit, &came);
    return came;
  };
  reconcile::CoordinatorsOptions options;
  options.server.tick = 5ms;
  auto coordinators = reconcile::Coordinators::start(options, cluster, clock, Logger::none(),
                                                     [&looks](const std::string&) { ++*looks.lock(); });
  ASSERT_TRUE(coordinators.ok()) << coordinators.status();
  ASSERT_TRUE((*coordinators)->job_seen(kKey, {.job = small_job("digits"), .uid = "u1"}).ok());
  const auto environment = (*coordinators)->pod_environment(kKey);
  const Deadline soon = Deadline::after(clock.now(), kWakeLimit);
  const auto stranger = member::Stream::open(
      environment.at("PACELINE_COORDINATOR"), {.token = "another job's", .job = kKey, .pod_uid = "uid-9"},
      {[](const v1::CoordinatorMessage&) {}, [](const absl::Status&) {}});
  ASSERT_TRUE(wait_for_looks(1)) << "its token is refused";
  EXPECT_EQ((*coordinators)->report(kKey)->refused, std::vector<std::string>{"uid-9"});
  std::vector<std::unique_ptr<member::Membership>> members;
  for (const int index : {0, 1}) {
    member::Environment mine;
    mine.coordinator = environment.at("PACELINE_COORDINATOR");
    mine.token = environment.at("PACELINE_TOKEN");
    mine.job = kKey;
    mine.index = index;
    mine.pod = str_cat("digits-worker-", index, "-0");
    mine.pod_uid = str_cat("uid-", index);
    auto member =
        member::Membership::attach(mine, {.host_id = "host", .tcp = {"127.0.0.1:1"}}, {}, clock, soon);
    ASSERT_TRUE(member.ok()) << member.status();
    members.push_back(*std::move(member));
  }
  ASSERT_TRUE(wait_for_looks(3)) << "the view, and the job's state";
  v1::Leaving leaving;
  leaving.set_outcome(v1::Leaving::FINISHED);
  ASSERT_TRUE(members[1]->leave(leaving, soon).ok());
  EXPECT_TRUE(wait_for_looks(4));
  EXPECT_EQ((*coordinators)->report(kKey)->state, plan::JobState::kRunning) << "the other trains";
}

}  // namespace
}  // namespace paceline

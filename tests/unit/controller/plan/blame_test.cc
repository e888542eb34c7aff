#include "controller/plan/blame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/plan/plan.h"
#include "tests/unit/controller/plan/world.h"

namespace paceline::plan {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST(BlameTest, NobodyFailed) {
  Observed world = make_running_world(1, 2);
  finish(world, pod_of(world, Role::kWorker, 0), 0);
  EXPECT_FALSE(blame_by_pods(world).has_value());
}

// The others leave at once, with the code of those that were told to; the chief saves first.
TEST(BlameTest, WhoFollowsAMemberThatIsAskedToStopIsNotBlamedBeforeThatHasSaidSo) {
  Observed world = make_running_world(1, 2);
  finish(world, pod_of(world, Role::kWorker, 0), kExitEnded, 60s);
  finish(world, pod_of(world, Role::kWorker, 1), kExitEnded, 59s);
  const Plan waits = plan(world);
  EXPECT_EQ(waits.status.phase, api::Phase::kRunning);
  ASSERT_TRUE(waits.requeue_after);
  EXPECT_LE(*waits.requeue_after, world.limits.save_grace - 60s);
  Culprit chief;
  chief.role = Role::kChief;
  chief.kind = CulpritKind::kFailed;
  chief.evidence = "it was stopped: this member was asked to stop";
  chief.age = 2s;
  Observed told = world;
  told.report->culprit = chief;
  EXPECT_THAT(plan(told).status.message, HasSubstr("chief-0"));
  world.now += world.limits.save_grace;
  EXPECT_THAT(plan(world).status.message, HasSubstr("worker-0")) << "not for ever";
}

// Each case: how chief, worker-0 and worker-1 ended (code, or minus a signal; 99: runs), how many ms ago, and
// who is to blame.
TEST(BlameTest, TheRootNotTheVictims) {
  struct End {
    int how = 99;
    int ms_ago = 0;
  };
  struct Case {
    const char* name;
    End chief, worker0, worker1;
    Role role;
    int index;
    const char* reason;
    std::size_t victims;
  };
  const Case cases[] = {
      {"one is killed", {}, {}, {-SIGKILL, 0}, Role::kWorker, 1, "MemberKilled", 0},
      {"one exits", {}, {2, 0}, {}, Role::kWorker, 0, "MemberExited", 0},
      {"the first one counts", {1, 100}, {1, 300}, {1, 50}, Role::kWorker, 0, "MemberExited", 2},
      {"evicted ones are victims even when they end first",
       {3, 900},
       {3, 800},
       {2, 10},
       Role::kWorker,
       1,
       "MemberExited",
       2},
      {"evicted only", {3, 10}, {3, 20}, {}, Role::kWorker, 0, "MemberExited", 1},
      {"peers of a killed one may be seen first",
       {1, 101},
       {1, 102},
       {-SIGKILL, 100},
       Role::kWorker,
       1,
       "MemberKilled",
       2},
      {"a much earlier exit is the cause",
       {1, 5000},
       {},
       {-SIGKILL, 100},
       Role::kChief,
       0,
       "MemberExited",
       1},
      {"exit code 2 is nobody's victim", {2, 102}, {}, {-SIGSEGV, 100}, Role::kChief, 0, "MemberExited", 1},
      {"the earlier of two signals",
       {-SIGABRT, 200},
       {-SIGKILL, 100},
       {},
       Role::kChief,
       0,
       "MemberKilled",
       1},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    Observed world = make_running_world(1, 2);
    const auto end = [&](Role role, int index, End how) {
      if (how.how == 99) return;
      cluster::Pod& pod = pod_of(world, role, index);
      if (how.how < 0)
        kill(world, pod, -how.how, how.ms_ago * 1ms);
      else
        finish(world, pod, how.how, how.ms_ago * 1ms);
    };
    end(Role::kChief, 0, c.chief);
    end(Role::kWorker, 0, c.worker0);
    end(Role::kWorker, 1, c.worker1);
    const auto blame = blame_by_pods(world);
    ASSERT_TRUE(blame.has_value());
    EXPECT_EQ(blame->pod->spec.role, c.role);
    EXPECT_EQ(blame->pod->spec.index, c.index);
    EXPECT_EQ(blame->reason, c.reason);
    EXPECT_EQ(blame->victims.size(), c.victims);
  }
}

TEST(BlameTest, TheMessageNamesEverything) {
  Observed world = make_running_world(1, 2);
  kill(world, pod_of(world, Role::kWorker, 1), SIGKILL);
  finish(world, pod_of(world, Role::kChief, 0), 3);
  const auto blame = blame_by_pods(world);
  EXPECT_EQ(blame->message,
            "worker-1 (pod fashion-worker-1-0, pid 4001) was killed by signal 9 (SIGKILL) at step 120");
  EXPECT_THAT(blame->victims, ElementsAre("chief-0 exited with code 3"));
}

TEST(BlameTest, ACommandThatCannotStart) {
  Observed world = make_world(0, 1);
  apply(plan(world), world);
  cluster::Pod& pod = world.pods[0];
  finish(world, pod, 127);
  pod.exit_code.reset();
  pod.reason = "StartError";
  pod.message = "'/x' can't be started: No such file or directory";
  const auto blame = blame_by_pods(world);
  EXPECT_EQ(blame->reason, "MemberNotStarted");
  EXPECT_EQ(blame->message,
            "worker-0 (pod fashion-worker-0-0) could not be started: '/x' can't be started: No such file or "
            "directory");
}

TEST(BlameTest, DeletedPodsAreNobodysFault) {
  Observed world = make_running_world(0, 2);
  kill(world, pod_of(world, Role::kWorker, 1), SIGTERM);
  pod_of(world, Role::kWorker, 1).deleting = true;
  EXPECT_FALSE(blame_by_pods(world).has_value());
}

TEST(BlameTest, ManyVictimsAreNotAllNamed) {
  Observed world = make_running_world(0, 32);
  for (int i = 0; i < 32; ++i) finish(world, pod_of(world, Role::kWorker, i), 1, i * 1ms);
  const auto blame = blame_by_pods(world);
  EXPECT_EQ(blame->pod->spec.index, 31);
  EXPECT_EQ(blame->victims.size(), 9u);
  EXPECT_EQ(blame->victims.back(), "...");
}

TEST(BlameTest, TheCoordinatorsVerdict) {
  struct Case {
    CulpritKind kind;
    const char* reason;
    const char* text;
  };
  for (const Case& c :
       {Case{CulpritKind::kDead, "MemberDied", "died at step 44: its stream ended"},
        Case{CulpritKind::kFrozen, "MemberFrozen", "stopped answering at step 44"},
        Case{CulpritKind::kFailed, "MemberFailed", "failed at step 44"},
        Case{CulpritKind::kUnreachable, "MemberUnreachable", "can't be reached by its peers at step 44"},
        Case{CulpritKind::kDiverged, "MemberDiverged", "has other weights than its peers at step 44"},
        Case{CulpritKind::kMissing, "MemberMissing", "never joined: its stream ended"}}) {
    Observed world = make_running_world(1, 2);
    Culprit culprit;
    culprit.member = MemberId{"m"};
    culprit.role = Role::kWorker;
    culprit.index = 1;
    culprit.pid = 4711;
    culprit.step = 44;
    culprit.kind = c.kind;
    culprit.evidence = "its stream ended";
    world.report->culprit = culprit;
    const Blame blame = blame_by_verdict(world);
    EXPECT_EQ(blame.reason, c.reason);
    EXPECT_THAT(blame.message,
                HasSubstr(std::string("worker-1 (pod fashion-worker-1-0, pid 4711) ") + c.text));
    EXPECT_EQ(blame.pod->spec.index, 1);
    EXPECT_THAT(blame.victims, IsEmpty());
  }
}

TEST(BlameTest, AVerdictIsCompletedByTheProcessEnd) {
  Observed world = make_running_world(1, 2);
  Culprit culprit;
  culprit.member = MemberId{"m"};
  culprit.role = Role::kChief;
  culprit.pid = 4000;
  culprit.step = 7;
  culprit.victims = {"worker-0: lost its link"};
  world.report->culprit = culprit;
  kill(world, pod_of(world, Role::kChief, 0), SIGSEGV);
  EXPECT_EQ(blame_by_verdict(world).message,
            "chief-0 (pod fashion-chief-0-0, pid 4000) was killed by signal 11 (SIGSEGV) at step 7");
  EXPECT_EQ(blame_by_verdict(world).reason, "MemberKilled");
  world.report->culprit->kind = CulpritKind::kFailed;
  world.report->culprit->evidence = "data.idx: no such file";
  pod_of(world, Role::kChief, 0).signal.reset();
  pod_of(world, Role::kChief, 0).exit_code = 1;
  EXPECT_EQ(blame_by_verdict(world).message,
            "chief-0 (pod fashion-chief-0-0, pid 4000) failed at step 7: data.idx: no such file; its process "
            "exited with code 1");
  EXPECT_THAT(blame_by_verdict(world).victims, ElementsAre("worker-0: lost its link"));
}

TEST(BlameTest, TheClustersWordsStandThereOnce) {
  Observed world = make_running_world(1, 2);
  cluster::Pod& pod = pod_of(world, Role::kWorker, 1);
  kill(world, pod, SIGKILL);
  Culprit culprit;
  culprit.member = MemberId{"m"};
  culprit.role = Role::kWorker;
  culprit.index = 1;
  culprit.step = 3;
  world.report->culprit = culprit;
  const auto message = [&](const std::string& reason, const std::string& words) {
    pod.reason = reason;
    pod.message = words;
    const std::string told = words.empty() ? reason : reason + ": " + words;
    world.report->culprit->evidence = "its process ended before it attached: " + told;
    return blame_by_verdict(world).message;
  };
  const std::string begin = "worker-1 (pod fashion-worker-1-0, pid 4001) was killed by signal 9 (SIGKILL)";
  EXPECT_EQ(message("Error", "killed by signal 9"),
            begin + " at step 3: its process ended before it attached");
  EXPECT_EQ(message("OOMKilled", ""), begin + " (OOMKilled) at step 3: its process ended before it attached");
}

TEST(BlameTest, WhoFailedByTheSameIsNoVictim) {
  Observed world = make_running_world(1, 3);
  Culprit culprit;
  culprit.kind = CulpritKind::kFailed;
  culprit.member = MemberId{"m"};
  culprit.role = Role::kChief;
  culprit.evidence = "the loss is nan";
  culprit.victims = {"worker-0: the loss is nan", "worker-1: lost its link", "worker-2: the loss is nan"};
  world.report->culprit = culprit;
  EXPECT_THAT(blame_by_verdict(world).message,
              EndsWith("failed at step 0: the loss is nan; the same happened to worker-0, worker-2"));
  EXPECT_THAT(blame_by_verdict(world).victims, ElementsAre("worker-1: lost its link"));
}

}  // namespace
}  // namespace paceline::plan

#include "controller/diagnosis/diagnosis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <deque>
#include <set>
#include <vector>

#include "base/process_end.h"
#include "base/text.h"

namespace paceline::diagnosis {
namespace {

using namespace std::chrono_literals;
using api::Fault;
using api::FaultKind;
using api::ObservationKind;
using api::RestartCause;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

constexpr WallTime kNow{1000h};

cluster::Pod running_pod(Role role, int index) {
  cluster::Pod pod;
  pod.spec.role = role;
  pod.spec.index = index;
  pod.spec.name = str_cat("fashion-", role_name(role), "-", index, "-0");
  pod.phase = cluster::PodPhase::kRunning;
  pod.pid = 4000 + index;
  pod.host = "node-1";
  return pod;
}

// A code, or minus a signal.
void end(cluster::Pod& pod, int how, Duration ago = {}) {
  pod.phase = how == 0 ? cluster::PodPhase::kSucceeded : cluster::PodPhase::kFailed;
  pod.reason = how == 0 ? "Completed" : "Error";
  if (how < 0) pod.signal = -how;
  if (how >= 0) pod.exit_code = how;
  pod.finished = kNow - ago;
}

Place place_of(const cluster::Pod& pod) {
  return {.role = pod.spec.role,
          .index = pod.spec.index,
          .pod_name = pod.spec.name,
          .pod = &pod,
          .last_step = 120,
          .built_in = true};
}

TEST(DiagnosisTest, AnEndAsToldIsNoExitOfItsOwnThoughThePodIsGone) {
  const auto cause_of = [](bool built_in, bool gone) {
    return diagnose({.pod_name = "fashion-worker-0-0", .gone = gone, .built_in = built_in},
                    Fault{.kind = FaultKind::kExited, .exit_code = kExitEnded})
        .cause;
  };
  EXPECT_EQ(cause_of(true, true), RestartCause::kDeleted);
  EXPECT_EQ(cause_of(true, false), RestartCause::kControllerLost);
  EXPECT_EQ(cause_of(false, true), RestartCause::kExited);
}

struct PodCase {
  const char* reason;
  std::optional<int> exit_code, signal;
  bool deleting;
  RestartCause cause;
};

class CauseOfAPod : public ::testing::TestWithParam<PodCase> {};

TEST_P(CauseOfAPod, FollowsFromItsEnd) {
  const PodCase& c = GetParam();
  cluster::Pod pod = running_pod(Role::kWorker, 1);
  if (!c.deleting) pod.phase = cluster::PodPhase::kFailed;
  pod.deleting = c.deleting;
  pod.reason = c.reason;
  pod.exit_code = c.exit_code;
  pod.signal = c.signal;
  const Fault fault = diagnose(place_of(pod));
  EXPECT_EQ(fault.cause, c.cause) << api::name(fault.cause);
  EXPECT_EQ(fault.kind == FaultKind::kDeleted, c.deleting);
}

INSTANTIATE_TEST_SUITE_P(
    Table, CauseOfAPod,
    ::testing::Values(PodCase{"Error", 1, {}, false, RestartCause::kExited},
                      PodCase{"Error", 127, {}, false, RestartCause::kExited},
                      PodCase{"Error", 128, {}, false, RestartCause::kKilled},
                      PodCase{"Error", 137, {}, false, RestartCause::kKilled},
                      PodCase{"Error", {}, 9, false, RestartCause::kKilled},
                      PodCase{"Error", 3, {}, false, RestartCause::kControllerLost},
                      PodCase{"OOMKilled", 137, {}, false, RestartCause::kOomKilled},
                      PodCase{"OOMKilled", {}, 9, false, RestartCause::kOomKilled},
                      PodCase{"OOMKilled", 1, {}, false, RestartCause::kOomKilled},
                      PodCase{"StartError", 127, {}, false, RestartCause::kNotStarted},
                      PodCase{"ContainerCannotRun", 128, {}, false, RestartCause::kNotStarted},
                      PodCase{"DeadlineExceeded", {}, {}, false, RestartCause::kDeadlineExceeded},
                      PodCase{"Evicted", {}, {}, false, RestartCause::kEvicted},
                      PodCase{"Evicted", 1, {}, false, RestartCause::kEvicted},
                      PodCase{"EvictionByEvictionAPI", {}, {}, true, RestartCause::kEvicted},
                      PodCase{"Preempting", {}, {}, false, RestartCause::kPreempted},
                      PodCase{"PreemptionByScheduler", {}, {}, true, RestartCause::kPreempted},
                      PodCase{"NodeLost", {}, {}, true, RestartCause::kNodeLost},
                      PodCase{"DeletionByTaintManager", {}, {}, true, RestartCause::kNodeLost},
                      PodCase{"DeletionByPodGC", {}, {}, false, RestartCause::kNodeLost},
                      PodCase{"Terminated", 137, {}, false, RestartCause::kNodeShutdown},
                      PodCase{"Shutdown", {}, {}, false, RestartCause::kNodeShutdown},
                      PodCase{"TerminationByKubelet", {}, {}, false, RestartCause::kNodeShutdown},
                      PodCase{"OutOfcpu", {}, {}, false, RestartCause::kRefusedByNode},
                      PodCase{"UnexpectedAdmissionError", {}, {}, false, RestartCause::kRefusedByNode},
                      PodCase{"", {}, {}, true, RestartCause::kDeleted}));

TEST(DiagnosisTest, AVerdictAloneHasItsCause) {
  const auto cause = [](FaultKind kind, std::optional<int> signal = {}) {
    return diagnose({}, Fault{.kind = kind, .signal = signal}).cause;
  };
  EXPECT_EQ(cause(FaultKind::kMissing), RestartCause::kSilent);
  EXPECT_EQ(cause(FaultKind::kFrozen), RestartCause::kSilent);
  EXPECT_EQ(cause(FaultKind::kUnreachable), RestartCause::kSilent);
  EXPECT_EQ(cause(FaultKind::kHung), RestartCause::kHung);
  EXPECT_EQ(cause(FaultKind::kDiverged), RestartCause::kDiverged);
  EXPECT_EQ(cause(FaultKind::kDead), RestartCause::kSilent);
  EXPECT_EQ(cause(FaultKind::kDead, 11), RestartCause::kKilled);
  EXPECT_EQ(cause(FaultKind::kFailed), RestartCause::kExited);
  EXPECT_EQ(cause(FaultKind::kOutOfMemory), RestartCause::kOutOfMemory);
  EXPECT_EQ(cause(FaultKind::kNotFinite), RestartCause::kNotFinite);
  EXPECT_EQ(cause(FaultKind::kDataUnreadable), RestartCause::kDataUnreadable);
}

TEST(DiagnosisTest, ANodeThatIsNotReadyExcusesSilenceAlone) {
  cluster::Pod pod = running_pod(Role::kWorker, 1);
  pod.node_not_ready = true;
  EXPECT_EQ(silenced_by(pod), RestartCause::kNodeLost);
  const auto told = [&](FaultKind kind, std::optional<int> signal = {}) {
    return diagnose(place_of(pod), Fault{.kind = kind, .role = Role::kWorker, .index = 1, .signal = signal});
  };
  using enum FaultKind;
  for (const FaultKind kind : {kMissing, kDead, kFrozen, kUnreachable}) {
    EXPECT_EQ(told(kind).cause, RestartCause::kNodeLost);
    EXPECT_EQ(told(kind).evidence.back().kind, ObservationKind::kNodeNotReady);
  }
  EXPECT_EQ(told(kDiverged).cause, RestartCause::kDiverged);
  EXPECT_EQ(told(kFailed).cause, RestartCause::kExited);
  EXPECT_EQ(told(kDead, 11).cause, RestartCause::kKilled) << "its end was told";
}

TEST(DiagnosisTest, CausesThatAreNotTheJobsFaultAreNotCharged) {
  std::set<std::string> charged, excused;
  for (int i = 0; i <= static_cast<int>(RestartCause::kResized); ++i) {
    const auto cause = static_cast<RestartCause>(i);
    (api::is_charged(cause) ? charged : excused).insert(api::name(cause));
  }
  EXPECT_THAT(charged, UnorderedElementsAre("Exited", "Killed", "OOMKilled", "OutOfMemory", "NotFinite",
                                            "DataUnreadable", "NotStarted", "Silent", "Hung", "Diverged",
                                            "DeadlineExceeded"));
  EXPECT_THAT(excused, UnorderedElementsAre("Evicted", "Preempted", "NodeLost", "NodeShutdown",
                                            "RefusedByNode", "Deleted", "ControllerLost", "Resized"));
}

TEST(DiagnosisTest, ThePodCompletesTheVerdict) {
  cluster::Pod pod = running_pod(Role::kChief, 0);
  end(pod, -SIGSEGV);
  const Fault told{.role = Role::kChief, .evidence = {{ObservationKind::kStreamEnded, "reset"}}};
  Fault fault = diagnose(place_of(pod), told);
  EXPECT_EQ(fault.kind, FaultKind::kKilled);
  EXPECT_EQ(fault.signal, SIGSEGV);
  EXPECT_EQ(fault.cause, RestartCause::kKilled);
  EXPECT_EQ(fault.pod, "fashion-chief-0-0");
  EXPECT_EQ(fault.host, "node-1");
  EXPECT_EQ(fault.pid, 4000);
  EXPECT_EQ(fault.step, 120);
  pod = running_pod(Role::kChief, 0);
  end(pod, 1);
  fault = diagnose(place_of(pod), Fault{.kind = FaultKind::kFailed, .role = Role::kChief, .step = 7});
  EXPECT_EQ(fault.kind, FaultKind::kFailed) << "its own word says more";
  EXPECT_EQ(fault.exit_code, 1);
  EXPECT_EQ(fault.step, 7);
}

TEST(DiagnosisTest, AKilledMemberWhosePodLackedMemoryRanOutOfIt) {
  cluster::Pod pod = running_pod(Role::kWorker, 1);
  end(pod, -SIGKILL);
  pod.reason = "OOMKilled";
  for (const FaultKind told : {FaultKind::kDead, FaultKind::kKilled, FaultKind::kOutOfMemory}) {
    const Fault fault = diagnose(place_of(pod), Fault{.kind = told, .role = Role::kWorker, .index = 1});
    EXPECT_EQ(fault.kind, FaultKind::kOutOfMemory);
    EXPECT_EQ(fault.cause, RestartCause::kOomKilled);
  }
}

TEST(DiagnosisTest, AMembersOwnWordStandsWhateverBecameOfItsPod) {
  cluster::Pod pod = running_pod(Role::kWorker, 1);
  end(pod, 1);
  for (const auto& [told, cause] : {std::pair(FaultKind::kOutOfMemory, RestartCause::kOutOfMemory),
                                    std::pair(FaultKind::kNotFinite, RestartCause::kNotFinite),
                                    std::pair(FaultKind::kDataUnreadable, RestartCause::kDataUnreadable)}) {
    const Fault fault = diagnose(place_of(pod), Fault{.kind = told, .role = Role::kWorker, .index = 1});
    EXPECT_EQ(fault.kind, told);
    EXPECT_EQ(fault.cause, cause);
    EXPECT_EQ(fault.exit_code, 1);
  }
}

TEST(DiagnosisTest, TheClustersWordsStandThereOnce) {
  cluster::Pod pod = running_pod(Role::kWorker, 1);
  end(pod, -SIGKILL);
  pod.reason = "OOMKilled";
  const Fault told{
      .role = Role::kWorker, .index = 1, .evidence = {{ObservationKind::kPodEndedEarly, "Error"}}};
  EXPECT_THAT(diagnose(place_of(pod), told).evidence,
              ElementsAre(api::Observation{ObservationKind::kPodEndedEarly, "OOMKilled"}));
}

TEST(DiagnosisTest, ASilentMemberWhosePodIsGoneWasDeleted) {
  using enum FaultKind;
  const auto kind = [](FaultKind told, bool gone, std::optional<int> exit_code = {}) {
    const Place place{.role = Role::kWorker, .index = 1, .pod_name = "fashion-worker-1-0", .gone = gone};
    return diagnose(place, Fault{.kind = told, .role = Role::kWorker, .index = 1, .exit_code = exit_code})
        .kind;
  };
  for (const FaultKind told : {kDead, kFrozen, kUnreachable}) {
    EXPECT_EQ(kind(told, true), kDeleted);
    EXPECT_EQ(kind(told, false), told) << "a list that lags";
  }
  for (const FaultKind told : {kMissing, kFailed, kDiverged}) EXPECT_EQ(kind(told, true), told);
  EXPECT_EQ(kind(kDead, true, 1), kExited) << "its end was told before";
}

TEST(DiagnosisTest, ADeletedMemberWhosePodIsMadeAgainHasNotExited) {
  const cluster::Pod again = running_pod(Role::kWorker, 1);
  EXPECT_EQ(diagnose(place_of(again), Fault{.kind = FaultKind::kDeleted}).cause, RestartCause::kDeleted);
}

TEST(DiagnosisTest, ACommandThatCannotStart) {
  cluster::Pod pod = running_pod(Role::kWorker, 0);
  end(pod, 127);
  pod.reason = "StartError";
  pod.message = "no such file";
  const Fault fault = diagnose(place_of(pod));
  EXPECT_EQ(fault.kind, FaultKind::kNotStarted);
  EXPECT_THAT(fault.evidence, ElementsAre(api::Observation{ObservationKind::kPodEnded, "no such file"}));
}

// Each case: how chief, worker-0 and worker-1 ended (a code, or minus a signal; 99: it runs), how many ms
// ago, and which of them is the root.
TEST(DiagnosisTest, TheFirstFailureIsTheRootNotItsVictims) {
  struct End {
    int how = 99;
    int ms_ago = 0;
  };
  struct Case {
    const char* name;
    End chief, worker0, worker1;
    Role role;
    int index;
    FaultKind kind;
    std::size_t victims;
  };
  using enum FaultKind;
  const Case cases[] = {
      {"one is killed", {}, {}, {-SIGKILL, 0}, Role::kWorker, 1, kKilled, 0},
      {"one exits", {}, {2, 0}, {}, Role::kWorker, 0, kExited, 0},
      {"the first one counts", {1, 100}, {1, 300}, {1, 50}, Role::kWorker, 0, kExited, 2},
      {"evicted ones are victims even when they end first",
       {3, 900},
       {3, 800},
       {2, 10},
       Role::kWorker,
       1,
       kExited,
       2},
      {"evicted only", {3, 10}, {3, 20}, {}, Role::kWorker, 0, kExited, 1},
      {"peers of a killed one may be seen first",
       {1, 101},
       {1, 102},
       {-SIGKILL, 100},
       Role::kWorker,
       1,
       kKilled,
       2},
      {"a much earlier exit is the cause", {1, 5000}, {}, {-SIGKILL, 100}, Role::kChief, 0, kExited, 1},
      {"exit code 2 is nobody's victim", {2, 102}, {}, {-SIGSEGV, 100}, Role::kChief, 0, kExited, 1},
      {"the earlier of two signals", {-SIGABRT, 200}, {-SIGKILL, 100}, {}, Role::kChief, 0, kKilled, 1},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    std::deque<cluster::Pod> pods;
    std::vector<Place> failed;
    const auto add = [&](Role role, int index, End how) {
      if (how.how == 99) return;
      end(pods.emplace_back(running_pod(role, index)), how.how, how.ms_ago * 1ms);
      failed.push_back(place_of(pods.back()));
    };
    add(Role::kChief, 0, c.chief);
    add(Role::kWorker, 0, c.worker0);
    add(Role::kWorker, 1, c.worker1);
    const Fault fault = first_failure(failed);
    EXPECT_EQ(fault.role, c.role);
    EXPECT_EQ(fault.index, c.index);
    EXPECT_EQ(fault.kind, c.kind);
    EXPECT_EQ(fault.victims.size(), c.victims);
  }
}

TEST(DiagnosisTest, ManyVictimsAreNotAllNamed) {
  std::deque<cluster::Pod> pods;
  std::vector<Place> failed;
  for (int i = 0; i < 32; ++i) {
    end(pods.emplace_back(running_pod(Role::kWorker, i)), 1, i * 1ms);
    failed.push_back(place_of(pods.back()));
  }
  const Fault fault = first_failure(failed);
  EXPECT_EQ(fault.index, 31);
  EXPECT_EQ(fault.victims.size(), api::kMostVictims);
  EXPECT_EQ(fault.more_victims, 23);
}

TEST(DiagnosisTest, OrdinaryReasonsAreNoWords) {
  cluster::Pod pod = running_pod(Role::kWorker, 1);
  end(pod, 1);
  pod.message = "exited with code 1";
  EXPECT_THAT(words_of(pod), IsEmpty());
  pod.reason = "Evicted";
  pod.message = "the node was low on memory";
  EXPECT_EQ(words_of(pod), "Evicted: the node was low on memory");
}

TEST(PodWords, InitContainersEndIsToldInTheClustersWords) {
  cluster::Pod pod = running_pod(Role::kWorker, 0);
  end(pod, 1);
  pod.message = "told";
  EXPECT_EQ(words_of(pod), "");
  pod.exit_code.reset();
  EXPECT_EQ(words_of(pod), "told");
}

}  // namespace
}  // namespace paceline::diagnosis

#include "controller/diagnosis/fault_text.h"

#include <gtest/gtest.h>

#include <csignal>

namespace paceline::diagnosis {
namespace {

using api::Fault;
using api::FaultKind;
using enum api::ObservationKind;

Fault fault_of(FaultKind kind, std::vector<api::Observation> evidence) {
  return {.kind = kind,
          .role = Role::kWorker,
          .index = 1,
          .pod = "fashion-worker-1-0",
          .pid = 4711,
          .step = 44,
          .evidence = std::move(evidence)};
}

// Golden texts: one for each kind of fault.
TEST(FaultTextTest, EachKindIsASentence) {
  struct Case {
    FaultKind kind;
    std::vector<api::Observation> evidence;
    const char *reason, *text;
    std::optional<int> exit_code = {}, signal = {};
  };
  const Case cases[] = {
      {FaultKind::kDead,
       {{kStreamEnded, "reset"}},
       "MemberDied",
       "died, last heard of at step 44: its control stream ended without a goodbye: reset"},
      {FaultKind::kFrozen,
       {{kSilent, "5s"}, {kNodeNotReady, ""}},
       "MemberFrozen",
       "stopped answering, last heard of at step 44: no heartbeat for 5s; its node is not ready"},
      {FaultKind::kFrozen,
       {{kKeepsView, "3"}},
       "MemberFrozen",
       "stopped answering, last heard of at step 44: when told to, it did not end view 3"},
      {FaultKind::kHung,
       {{kTakesNoStep, "compute for 12 s, while chief-0 waits for it"}},
       "MemberHung",
       "hangs at step 44: it is in compute for 12 s, while chief-0 waits for it"},
      {FaultKind::kFailed,
       {{kSaid, "data.idx: no such file"}, {kPodEnded, ""}},
       "MemberFailed",
       "failed, last heard of at step 44: data.idx: no such file; its process exited with code 1",
       1},
      {FaultKind::kFailed,
       {{kStopped, "asked to"}},
       "MemberFailed",
       "failed, last heard of at step 44: it was stopped: asked to"},
      {FaultKind::kFailed,
       {{kBrokeProtocol, "a second Hello"}},
       "MemberFailed",
       "failed, last heard of at step 44: it broke the protocol: a second Hello"},
      {FaultKind::kUnreachable,
       {{kPeerReports, "2 peers lost the link to it"}},
       "MemberUnreachable",
       "can't be reached by its peers, last heard of at step 44: 2 peers lost the link to it"},
      {FaultKind::kUnreachable,
       {{kOutOfView, "it was lost, and others wait"}},
       "MemberUnreachable",
       "can't be reached by its peers, last heard of at step 44: it was lost, and others wait"},
      {FaultKind::kDiverged,
       {{kDiverged, "most ranks after 12 steps"}},
       "MemberDiverged",
       "has other weights than its peers, last heard of at step 44: its weights differ from those of most "
       "ranks after 12 "
       "steps"},
      {FaultKind::kMissing,
       {{kNotJoined, "60s"}},
       "MemberMissing",
       "never joined: it did not join within 60s"},
      {FaultKind::kRefused, {{kRefused, ""}}, "MemberRefused", "is refused: its token is not the job's"},
      {FaultKind::kOutOfMemory,
       {{kOutOfMemory, "training finds no room"}, {kPodEnded, ""}},
       "MemberOutOfMemory",
       "ran out of memory, last heard of at step 44: training finds no room; its process exited with code 1",
       1},
      {FaultKind::kNotFinite,
       {{kNotFinite, "step 44: the loss is nan"}},
       "MemberNotFinite",
       "has a loss or a gradient that is not finite, last heard of at step 44: step 44: the loss is nan"},
      {FaultKind::kDataUnreadable,
       {{kDataUnreadable, "x.csv: line 3: no number"}},
       "MemberDataUnreadable",
       "can't read its data, last heard of at step 44: x.csv: line 3: no number"},
      {FaultKind::kOutOfMemory,
       {{kPodEnded, "OOMKilled"}},
       "MemberOutOfMemory",
       "ran out of memory, last heard of at step 44; its process was killed by signal 9 (SIGKILL) "
       "(OOMKilled)",
       {},
       SIGKILL},
      {FaultKind::kKilled,
       {{kPodEnded, ""}},
       "MemberKilled",
       "was killed by signal 7 (SIGBUS), as it happens where a mapped file, of data or weights, is cut short "
       "or "
       "shared memory runs out, last heard of at step 44",
       {},
       SIGBUS},
      {FaultKind::kExited,
       {{kStreamEnded, ""}, {kPodEnded, ""}},
       "MemberExited",
       "exited with code 2, last heard of at step 44",
       2},
      {FaultKind::kExited,
       {{kPodEndedEarly, "Evicted"}},
       "MemberExited",
       "ended: Evicted, last heard of at step 44: its process ended before it attached"},
      {FaultKind::kNotStarted,
       {{kPodEnded, "no such file"}},
       "MemberNotStarted",
       "could not be started: no such file, last heard of at step 44",
       127},
      {FaultKind::kDeleted,
       {{kSilent, "5s"}, {kPodDeleted, "Evicted: drained"}},
       "MemberDeleted",
       "was deleted (Evicted: drained), last heard of at step 44: no heartbeat for 5s"},
  };
  for (const Case& c : cases) {
    Fault fault = fault_of(c.kind, c.evidence);
    fault.exit_code = c.exit_code;
    fault.signal = c.signal;
    EXPECT_EQ(reason_of(fault), c.reason);
    EXPECT_EQ(message_of(fault), std::string("worker-1 (pod fashion-worker-1-0, pid 4711) ") + c.text);
  }
}

TEST(FaultTextTest, UnknownFieldsAreLeftOut) {
  EXPECT_EQ(message_of(Fault{.kind = FaultKind::kDeleted, .role = Role::kServer}), "ps-0 was deleted");
  Fault fault = fault_of(FaultKind::kExited, {});
  fault.role = Role::kEvaluator;
  fault.exit_code = 1;
  EXPECT_EQ(message_of(fault), "evaluator-1 (pod fashion-worker-1-0, pid 4711) exited with code 1")
      << "no steps";
}

TEST(FaultTextTest, VictimsAreNamedAsFarAsTheyFailedByAnotherReason) {
  Fault fault = fault_of(FaultKind::kFailed, {{kSaid, "the loss is nan"}});
  fault.victims = {{Role::kChief, 0, {kSaid, ""}, {}, {}, true},
                   {Role::kWorker, 0, {kLostLink, "worker-1"}},
                   {Role::kWorker, 2, {kSaid, ""}, {}, {}, true},
                   {Role::kWorker, 3, {kPodEnded, ""}, 3},
                   {Role::kServer, 0, {kStopped, "the job ends"}}};
  EXPECT_EQ(message_of(fault),
            "worker-1 (pod fashion-worker-1-0, pid 4711) failed, last heard of at step 44: the loss is nan; "
            "the same happened to "
            "chief-0, worker-2");
  EXPECT_EQ(
      victims_of(fault),
      "; as a consequence worker-0 lost its link to worker-1, worker-3 exited with code 3, ps-0: it was "
      "stopped: the job ends");
  fault.more_victims = 5;
  EXPECT_TRUE(victims_of(fault).ends_with(", 5 more"));
  EXPECT_EQ(victims_of(fault_of(FaultKind::kFailed, {})), "");
}

TEST(FaultTextTest, APodsEndIsToldInTheSameWords) {
  cluster::Pod pod;
  pod.phase = cluster::PodPhase::kFailed;
  pod.signal = SIGKILL;
  EXPECT_EQ(end_of(pod), "was killed by signal 9 (SIGKILL)");
  pod.reason = "StartError";
  pod.message = "no such file";
  EXPECT_EQ(end_of(pod), "could not be started: no such file");
}

}  // namespace
}  // namespace paceline::diagnosis

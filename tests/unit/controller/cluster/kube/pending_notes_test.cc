#include "controller/cluster/kube/pending_notes.h"

#include <gtest/gtest.h>

#include "base/text.h"

namespace paceline::kube {
namespace {

using namespace std::chrono_literals;

constexpr TimePoint kStart{1h};

std::shared_ptr<SlimPod> waiting(int number) {
  auto pod = std::make_shared<SlimPod>();
  pod->uid = str_cat("uid-", number);
  pod->key = str_cat("n/pod-", number);
  pod->node = "node";
  return pod;
}

Json event(const std::string& uid, const char* reason, const char* time, const char* type = "Warning") {
  return {{"type", type},
          {"reason", reason},
          {"message", str_cat(reason, " at ", time)},
          {"lastTimestamp", time},
          {"involvedObject", {{"uid", uid}}}};
}

// What is shown of a pod.
std::string shown(const PendingNotes& notes, const SlimPod& slim) {
  cluster::Pod pod = to_cluster_pod(slim);
  notes.add_to(pod);
  return str_cat(pod.reason, pod.message.empty() ? "" : ": ", pod.message);
}

TEST(PendingNotesTest, PodIsAskedAboutOnlyWhenItIsLate) {
  PendingNotes notes;
  const PendingNotes::Pods pods{waiting(1)};
  EXPECT_EQ(notes.next(pods, kStart), nullptr);
  EXPECT_EQ(notes.next(pods, kStart + kOrdinaryStart - 1ms), nullptr);
  EXPECT_EQ(notes.next(pods, kStart + kOrdinaryStart), pods[0]);
  notes.on_events(*pods[0], {});
  EXPECT_EQ(notes.next(pods, kStart + kOrdinaryStart + 1s), nullptr) << "it was asked about";
  EXPECT_EQ(notes.next(pods, kStart + kOrdinaryStart + kBetweenQuestionsOfOne), pods[0]);
}

TEST(PendingNotesTest, WhileOneIsAnsweredNobodyElseIsAskedAbout) {
  PendingNotes notes;
  const PendingNotes::Pods pods{waiting(1), waiting(2)};
  notes.next(pods, kStart);
  const TimePoint late = kStart + 1min;
  EXPECT_EQ(notes.next(pods, late), pods[0]);
  EXPECT_EQ(notes.next(pods, late + 1s), nullptr);
  notes.on_events(*pods[0], {});
  EXPECT_EQ(notes.next(pods, late + 1s), pods[1]);
  notes.no_answer(late + 2h);
  EXPECT_EQ(notes.next(pods, late + 2h + kAfterNoAnswer - 1ms), nullptr);
  EXPECT_EQ(notes.next(pods, late + 2h + kAfterNoAnswer), pods[0]);
}

TEST(PendingNotesTest, OneQuestionAtATimeForAll) {
  PendingNotes notes;
  PendingNotes::Pods pods;
  for (int i = 0; i < 1000; ++i) pods.push_back(waiting(i));
  notes.next(pods, kStart);
  int questions = 0;
  for (Duration time{}; time < 2s; time += 10ms) {
    const auto asked = notes.next(pods, kStart + 1min + time);
    if (asked == nullptr) continue;
    ++questions;
    notes.on_events(*asked, {});
  }
  EXPECT_EQ(questions, 2s / kBetweenQuestions);
}

TEST(PendingNotesTest, PodWithAReasonOrRunningIsNotAskedAbout) {
  PendingNotes notes;
  const auto unscheduled = waiting(1), says = waiting(2), runs = waiting(3), leaves = waiting(4);
  unscheduled->node = "";
  says->reason = "ErrImagePull";
  runs->phase = cluster::PodPhase::kRunning;
  leaves->deletion = WallTime(1h);
  const PendingNotes::Pods pods{unscheduled, says, runs, leaves};
  notes.next(pods, kStart);
  EXPECT_EQ(notes.next(pods, kStart + 1h), nullptr);
}

TEST(PendingNotesTest, TheNewestWarningOfThePodCounts) {
  PendingNotes notes;
  const PendingNotes::Pods pods{waiting(1)};
  notes.next(pods, kStart);
  EXPECT_EQ(shown(notes, *pods[0]), "");
  notes.on_events(*pods[0], {event("uid-1", "FailedMount", "2026-01-31T12:00:07Z"),
                        event("uid-1", "FailedAttachVolume", "2026-01-31T12:00:05Z"),
                        event("uid-1", "FailedScheduling", "2026-01-31T12:00:09Z"),
                        event("uid-1", "Pulled", "2026-01-31T12:00:09Z", "Normal"),
                        event("uid-2", "FailedCreatePodSandBox", "2026-01-31T12:00:09Z"), Json(7), nullptr});
  EXPECT_EQ(shown(notes, *pods[0]), "FailedMount: FailedMount at 2026-01-31T12:00:07Z");
  const auto other = waiting(2);
  notes.on_events(*other, {event("uid-2", "FailedMount", "2026-01-31T12:00:09Z")});
  EXPECT_EQ(shown(notes, *other), "") << "nobody has asked";
}

TEST(PendingNotesTest, APodThatRunsIsForgotten) {
  PendingNotes notes;
  const auto pod = waiting(1);
  notes.next({pod}, kStart);
  notes.on_events(*pod, {event("uid-1", "FailedMount", "2026-01-31T12:00:07Z")});
  pod->phase = cluster::PodPhase::kRunning;
  EXPECT_EQ(shown(notes, *pod), "");
  notes.next({pod}, kStart + 1s);
  pod->phase = cluster::PodPhase::kPending;
  EXPECT_EQ(shown(notes, *pod), "");
}

}  // namespace
}  // namespace paceline::kube

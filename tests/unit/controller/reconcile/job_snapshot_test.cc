#include "controller/reconcile/job_snapshot.h"

#include <gtest/gtest.h>

namespace paceline::reconcile {
namespace {

const WallTime kBegin{std::chrono::seconds(1000)};

api::TrainingJob job(api::Phase phase, Step step, const std::string& checkpoint = "") {
  api::TrainingJob job;
  job.status.phase = phase;
  job.status.progress.step = step;
  job.status.last_checkpoint = checkpoint;
  return job;
}

// Seconds after kBegin.
struct Moments {
  int progressed;
  std::optional<int> checkpoint;
  bool operator==(const Moments&) const = default;
};

TEST(JobSnapshotTest, MomentsAreThoseOfChanges) {
  using enum api::Phase;
  const struct {
    api::TrainingJob job;
    Moments want;
  } passes[] = {
      {job(kPending, 0), {0, {}}},
      {job(kStarting, 0), {1, {}}},  // now it is to begin
      {job(kStarting, 0), {1, {}}},
      {job(kRunning, 1), {3, {}}},
      {job(kRunning, 1), {3, {}}},
      {job(kRunning, 2, "step-000000001"), {5, 5}},
      {job(kRunning, 2, "step-000000001"), {5, 5}},
      {job(kRestarting, 1, "step-000000001"), {7, 5}},  // a step that is taken again
      {job(kRestarting, 1, "step-000000001"), {7, 5}},
      {job(kRunning, 2, "step-000000002"), {9, 9}},
      {job(kSuspended, 2, "step-000000002"), {9, 9}},
      {job(kSuspended, 2, "step-000000002"), {11, 11}},
      {job(kStarting, 2, "step-000000002"), {12, 12}},  // as long as it was suspended is no fault
      {job(kRunning, 2, "step-000000002"), {12, 12}},
  };
  std::optional<JobSnapshot> before;
  int now = 0;
  for (const auto& pass : passes) {
    before = next_snapshot(before ? &*before : nullptr, pass.job, kBegin + std::chrono::seconds(now));
    const auto seconds = [](WallTime at) {
      return static_cast<int>(std::chrono::duration_cast<std::chrono::seconds>(at - kBegin).count());
    };
    Moments got{seconds(before->progressed), {}};
    if (before->checkpoint) got.checkpoint = seconds(*before->checkpoint);
    EXPECT_EQ(got, pass.want) << "pass " << now;
    ++now;
  }
}

TEST(JobSnapshotTest, CheckpointThatIsThereAlreadyIsNewToTheController) {
  EXPECT_EQ(next_snapshot(nullptr, job(api::Phase::kRunning, 5, "step-000000003"), kBegin).checkpoint,
            kBegin);
}

}  // namespace
}  // namespace paceline::reconcile

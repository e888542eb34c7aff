#include "controller/plan/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/plan/simulate.h"
#include "tests/unit/controller/plan/world.h"

namespace paceline::plan {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(ExplainTest, TheWholeStoryFromNothingToRunning) {
  const std::string text = explain_job(make_world(1, 1));
  EXPECT_EQ(text,
            R"(Plan 1: 0 pods, coordinator Forming
  create pod fashion-chief-0-0  (chief-0 of 2 pods is missing)
      command: /opt/paceline-worker
      threads: 4
      PACELINE_ATTEMPT=0
      PACELINE_COORDINATOR=127.0.0.1:1234
      PACELINE_INCARNATION=0
      PACELINE_INDEX=0
      PACELINE_JOB=default/fashion
      PACELINE_POD=fashion-chief-0-0
      PACELINE_ROLE=chief
      PACELINE_SLOT=0
      PACELINE_THREADS=4
      PACELINE_TOKEN=***
  create pod fashion-worker-0-0  (worker-0 of 2 pods is missing)
      command: /opt/paceline-worker
      threads: 4
      PACELINE_ATTEMPT=0
      PACELINE_COORDINATOR=127.0.0.1:1234
      PACELINE_INCARNATION=0
      PACELINE_INDEX=0
      PACELINE_JOB=default/fashion
      PACELINE_POD=fashion-worker-0-0
      PACELINE_ROLE=worker
      PACELINE_SLOT=1
      PACELINE_THREADS=4
      PACELINE_TOKEN=***
  record event CreatingPods: creating 2 pods  (the job's phase is now Starting)
  status: Starting: creating 2 pods
  look again after 1.0 s or when something changes

Plan 2: 2 pods, coordinator Running
  record event MembersTrain: view 1 with 2 members trains  (the job's phase is now Running)
  status: Running: view 1 with 2 members trains
  look again after 1.0 s or when something changes
)");
}

TEST(ExplainTest, AJobWithItsOwnProgramsHasNoCoordinator) {
  Observed world = make_world(1, 1);
  world.job.spec.training.reset();
  world.report.reset();
  world.coordinator_env.clear();
  const std::string text = explain_job(world);
  EXPECT_THAT(text, HasSubstr("Plan 1: 0 pods, no coordinator\n"));
  EXPECT_THAT(text, HasSubstr("command: the image's own"));
  EXPECT_THAT(text, HasSubstr("RANK=1"));
  EXPECT_THAT(text, HasSubstr("Plan 2: 2 pods, no coordinator\n"));
  EXPECT_THAT(text, HasSubstr("status: Running: all 2 pods run"));
}

TEST(ExplainTest, SecretsStayOut) {
  Observed world = make_world(0, 1);
  world.job.spec.replica_specs.worker->container.emplace().env = {{"AWS_SECRET_ACCESS_KEY", "hush"}};
  EXPECT_THAT(explain_job(world), Not(HasSubstr("hush")));
  EXPECT_THAT(explain_job(world), Not(HasSubstr("secret token")));
}

TEST(ExplainTest, DeletionsAndLargeJobs) {
  Observed world = make_running_world(0, 2);
  world.stop = Stop::kOrderly;
  EXPECT_THAT(explain(plan(world)), HasSubstr("delete pod fashion-worker-1-0, SIGKILL after 10"));
  EXPECT_THAT(explain_job(make_world(1, 256)), HasSubstr("fashion-worker-255-0"));
  EXPECT_THAT(explain_job(make_world(1, 256)), HasSubstr("Running: view 1 with 257 members trains"));
  EXPECT_THAT(explain(plan(make_running_world(0, 1))), HasSubstr("nothing to do"));
}

}  // namespace
}  // namespace paceline::plan

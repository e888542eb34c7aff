#include "controller/dashboard/job_actions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "base/guarded.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_place.h"

namespace paceline::dashboard {
namespace {

using ::testing::ElementsAre;
using ::testing::StartsWith;

class JobActionsTest : public ::testing::Test {
 protected:
  // The status of the answer, where it came at once; else 0.
  int act(Action action, const std::string& body = "") {
    const auto status = std::make_shared<Guarded<int>>();
    Call call{.answer = [status](const web::HttpAnswer& answer) { *status->lock() = answer.status; },
              .key = "default/digits",
              .object = std::make_shared<const kube::Json>(running_job())};
    call.request.body = body;
    actions_.act(std::move(call), action);
    return *status->lock();
  }
  std::vector<std::string> audited() { return *audited_.lock(); }

  FakeClock clock_;
  FakePlace place_;
  Board board_{clock_};
  Guarded<std::vector<std::string>> audited_;
  JobActions actions_{board_, place_, clock_,
                      [this](const Viewer&, Action, const std::string&, const std::string& result) {
                        audited_.lock()->push_back(result);
                      }};
};

TEST_F(JobActionsTest, RefusedActionsAreAudited) {
  EXPECT_EQ(act(Action::kResume), 409);
  EXPECT_EQ(act(Action::kScale, "{"), 400);
  EXPECT_THAT(audited(), ElementsAre(StartsWith("refused: "), StartsWith("refused: ")));
}

TEST_F(JobActionsTest, TooManyActionsAreAudited) {
  const auto held = place_.done.lock();  // nothing can be recorded, so all wait
  int status = 0;
  for (std::size_t i = 0; status == 0 && i < 2 * Workers::kMostWaiting; ++i) status = act(Action::kSuspend);
  EXPECT_EQ(status, 429);
  EXPECT_THAT(audited(), ElementsAre(StartsWith("refused: ")));
}

}  // namespace
}  // namespace paceline::dashboard

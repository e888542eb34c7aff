#include "runtime/nccl/states.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace paceline::nccl {
namespace {

std::string line(State state, Happening happening, ncclResult_t result = ncclSuccess) {
  const Decision d = decide(state, happening, result);
  EXPECT_FALSE(d.reason.empty());
  return std::string(state_name(d.next)) + ", " + action_name(d.action);
}

struct Row {
  State state;
  const char *success, *in_progress, *error, *expired, *closed, *let_go, *released, *stuck;
};

constexpr char kAborts[] = "aborting, abort";
const Row kRows[] = {
    {State::kInit, "ready, go on", "init, ask", kAborts, kAborts, kAborts, kAborts, "init, nothing",
     "gone, give up"},
    {State::kReady, "ready, go on", "ready, ask", kAborts, kAborts, kAborts, "leaving, finalize",
     "ready, nothing", "gone, give up"},
    {State::kLeaving, "leaving, destroy", "leaving, ask", kAborts, kAborts, kAborts, "leaving, nothing",
     "gone, nothing", "gone, give up"},
    {State::kAborting, "aborting, nothing", "aborting, nothing", "aborting, nothing", "aborting, nothing",
     "aborting, nothing", "aborting, nothing", "gone, nothing", "gone, give up"},
    {State::kGone, "gone, nothing", "gone, nothing", "gone, nothing", "gone, nothing", "gone, nothing",
     "gone, nothing", "gone, nothing", "gone, nothing"},
};

TEST(States, EveryHappeningInEveryState) {
  std::set<State> seen;
  for (const Row& row : kRows) {
    SCOPED_TRACE(state_name(row.state));
    seen.insert(row.state);
    EXPECT_EQ(line(row.state, Happening::kAnswer, ncclSuccess), row.success);
    EXPECT_EQ(line(row.state, Happening::kAnswer, ncclInProgress), row.in_progress);
    for (const ncclResult_t error : {ncclUnhandledCudaError, ncclSystemError, ncclInternalError,
                                     ncclInvalidArgument, ncclInvalidUsage, ncclRemoteError, ncclNumResults})
      EXPECT_EQ(line(row.state, Happening::kAnswer, error), row.error);
    EXPECT_EQ(line(row.state, Happening::kExpired), row.expired);
    EXPECT_EQ(line(row.state, Happening::kClosed), row.closed);
    EXPECT_EQ(line(row.state, Happening::kLetGo), row.let_go);
    EXPECT_EQ(line(row.state, Happening::kReleased), row.released);
    EXPECT_EQ(line(row.state, Happening::kStuck), row.stuck);
  }
  EXPECT_EQ(seen.size(), 5U);
}

// Whatever happens, it goes on to its end and never back.
TEST(States, NeverGoBack) {
  for (const Row& row : kRows) {
    for (int h = 0; h <= static_cast<int>(Happening::kStuck); ++h) {
      for (int result = 0; result <= ncclNumResults; ++result) {
        const auto happening = static_cast<Happening>(h);
        EXPECT_GE(decide(row.state, happening, static_cast<ncclResult_t>(result)).next, row.state)
            << happening_name(happening) << " in " << state_name(row.state);
      }
    }
  }
}

}  // namespace
}  // namespace paceline::nccl

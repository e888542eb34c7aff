#include "runtime/nccl/states.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace paceline::nccl {
namespace {

std::string line(State state, Event event, ncclResult_t result = ncclSuccess,
                 Keeping keeping = Keeping::kNever) {
  const Decision d = decide(state, event, result, keeping);
  EXPECT_FALSE(d.reason.empty());
  return std::string(state_name(d.next)) + ", " + action_name(d.action);
}

struct Row {
  State state;
  const char *success, *in_progress, *error, *all_shrunk, *not_shrunk, *expired, *closed, *parted, *let_go,
      *handed_over, *released, *stuck;
};

constexpr char kAborts[] = "aborting, abort", kUndone[] = "init, undo", kGivenUp[] = "gone, give up";
const Row kRows[] = {
    {State::kShrinking, "shrinking, go on", "shrinking, ask", kUndone, "ready, go on", kUndone, kUndone,
     kAborts, kAborts, kAborts, "shrinking, nothing", "shrinking, nothing", kGivenUp},
    {State::kInit, "ready, go on", "init, ask", kAborts, "init, nothing", "init, nothing", kAborts, kAborts,
     kAborts, kAborts, "init, nothing", "init, nothing", kGivenUp},
    {State::kReady, "ready, go on", "ready, ask", kAborts, "ready, nothing", "ready, nothing", kAborts,
     kAborts, kAborts, "leaving, finalize", "ready, nothing", "ready, nothing", kGivenUp},
    {State::kRevoking, "kept, nothing", "revoking, ask", kAborts, "revoking, nothing", "revoking, nothing",
     kAborts, "revoking, nothing", "revoking, nothing", "revoking, nothing", "revoking, nothing",
     "revoking, nothing", kGivenUp},
    {State::kKept, "kept, nothing", "kept, nothing", "kept, nothing", "kept, nothing", "kept, nothing",
     kAborts, "kept, nothing", "kept, nothing", kAborts, "gone, nothing", "kept, nothing", kGivenUp},
    {State::kLeaving, "leaving, destroy", "leaving, ask", kAborts, "leaving, nothing", "leaving, nothing",
     kAborts, kAborts, kAborts, "leaving, nothing", "leaving, nothing", "gone, nothing", kGivenUp},
    {State::kAborting, "aborting, nothing", "aborting, nothing", "aborting, nothing", "aborting, nothing",
     "aborting, nothing", "aborting, nothing", "aborting, nothing", "aborting, nothing", "aborting, nothing",
     "aborting, nothing", "gone, nothing", kGivenUp},
    {State::kGone, "gone, nothing", "gone, nothing", "gone, nothing", "gone, nothing", "gone, nothing",
     "gone, nothing", "gone, nothing", "gone, nothing", "gone, nothing", "gone, nothing", "gone, nothing",
     "gone, nothing"},
};

TEST(States, EveryHappeningInEveryState) {
  std::set<State> seen;
  for (const Row& row : kRows) {
    SCOPED_TRACE(state_name(row.state));
    seen.insert(row.state);
    EXPECT_EQ(line(row.state, Event::kAnswer, ncclSuccess), row.success);
    EXPECT_EQ(line(row.state, Event::kAnswer, ncclInProgress), row.in_progress);
    for (const ncclResult_t error : {ncclUnhandledCudaError, ncclSystemError, ncclInternalError,
                                     ncclInvalidArgument, ncclInvalidUsage, ncclRemoteError, ncclNumResults})
      EXPECT_EQ(line(row.state, Event::kAnswer, error), row.error);
    EXPECT_EQ(line(row.state, Event::kAllShrunk), row.all_shrunk);
    EXPECT_EQ(line(row.state, Event::kNotShrunk), row.not_shrunk);
    EXPECT_EQ(line(row.state, Event::kExpired), row.expired);
    EXPECT_EQ(line(row.state, Event::kClosed), row.closed);
    EXPECT_EQ(line(row.state, Event::kParted), row.parted);
    EXPECT_EQ(line(row.state, Event::kLetGo), row.let_go);
    EXPECT_EQ(line(row.state, Event::kHandedOver), row.handed_over);
    EXPECT_EQ(line(row.state, Event::kReleased), row.released);
    EXPECT_EQ(line(row.state, Event::kStuck), row.stuck);
  }
  EXPECT_EQ(seen.size(), 8U);
}

// One that is to be kept differs from others only where its use ends.
TEST(States, KeptCommunicatorIsStoppedAndStays) {
  for (const Row& row : kRows) {
    for (int h = 0; h <= static_cast<int>(Event::kStuck); ++h) {
      for (const ncclResult_t result : {ncclSuccess, ncclInProgress, ncclRemoteError}) {
        const auto event = static_cast<Event>(h);
        SCOPED_TRACE(std::string(state_name(row.state)) + ", " + happening_name(event));
        const bool at_work = event == Event::kExpired || event == Event::kClosed;
        const bool idle = event == Event::kLetGo || event == Event::kParted;
        std::string always = line(row.state, event, result), if_idle = always;
        if (row.state == State::kReady && at_work) always = "revoking, revoke";
        if (row.state == State::kReady && idle) always = if_idle = "kept, nothing";
        EXPECT_EQ(line(row.state, event, result, Keeping::kAlways), always);
        EXPECT_EQ(line(row.state, event, result, Keeping::kIdle), if_idle);
      }
    }
  }
}

// Whatever happens, it goes on to its end and never back.
TEST(States, NeverGoBack) {
  for (const Row& row : kRows) {
    for (int h = 0; h <= static_cast<int>(Event::kStuck); ++h) {
      for (int result = 0; result <= ncclNumResults; ++result) {
        for (const Keeping keeping : {Keeping::kNever, Keeping::kIdle, Keeping::kAlways}) {
          const auto event = static_cast<Event>(h);
          EXPECT_GE(decide(row.state, event, static_cast<ncclResult_t>(result), keeping).next, row.state)
              << happening_name(event) << " in " << state_name(row.state);
        }
      }
    }
  }
}

}  // namespace
}  // namespace paceline::nccl

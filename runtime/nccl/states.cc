#include "runtime/nccl/states.h"

#include <iterator>
#include <utility>

#include "base/text.h"

namespace paceline::nccl {

namespace {

// Its use ends here, though something is under way.
Decision stopped(State state, Keeping keeping, std::string reason) {
  if (state == State::kReady && keeping == Keeping::kAlways)
    return {State::kRevoking, Action::kRevoke, std::move(reason)};
  return {State::kAborting, Action::kAbort, std::move(reason)};
}

// What NCCL blames on itself is not kept: a revoke would not mend it.
Decision answered(State state, ncclResult_t result) {
  const bool fine = result == ncclSuccess, open = result == ncclInProgress;
  const std::string failed = str_cat("NCCL failed with ", static_cast<int>(result));
  if (state < State::kAborting && state != State::kKept && open) return {state, Action::kAsk, "it goes on"};
  switch (state) {
    case State::kShrinking:
      if (fine) return {state, Action::kGoOn, "this rank's is there"};
      return {State::kInit, Action::kUndo, failed};
    case State::kInit:
    case State::kReady:
      if (fine) return {State::kReady, Action::kGoOn, state == State::kInit ? "all ranks are there" : "done"};
      return {State::kAborting, Action::kAbort, failed};
    case State::kRevoking:
      if (fine) return {State::kKept, Action::kNone, "all that was under way has stopped"};
      return {State::kAborting, Action::kAbort, failed};
    case State::kLeaving:
      if (fine) return {State::kLeaving, Action::kDestroy, "all that was enqueued is done"};
      return {State::kAborting, Action::kAbort, failed};
    case State::kKept:
      return {state, Action::kNone, "nobody asked"};
    case State::kAborting:
      return {state, Action::kNone, "it is aborted anyway"};
    case State::kGone:
      break;
  }
  return {state, Action::kNone, "it is gone"};
}

Decision let_go(State state, Keeping keeping) {
  switch (state) {
    case State::kShrinking:
    case State::kInit:
      return {State::kAborting, Action::kAbort, "nobody needs it any more"};
    case State::kReady:
      if (keeping == Keeping::kNever) return {State::kLeaving, Action::kFinalize, "nobody needs it"};
      return {State::kKept, Action::kNone, "nobody needs it for now"};
    case State::kKept:
      // Others may have shrunk it: then none may leave it in the usual way.
      return {State::kAborting, Action::kAbort, "nobody shrinks it"};
    default:
      return {state, Action::kNone, "it ends anyway"};
  }
}

}  // namespace

const char* state_name(State state) {
  static constexpr const char* kNames[] = {"shrinking", "init",    "ready",    "revoking",
                                           "kept",      "leaving", "aborting", "gone"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(State::kGone) + 1);
  return state <= State::kGone ? kNames[static_cast<std::size_t>(state)] : "?";
}

const char* happening_name(Event event) {
  static constexpr const char* kNames[] = {"answer", "all shrunk", "not shrunk",  "expired",  "closed",
                                           "parted", "let go",     "handed over", "released", "stuck"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(Event::kStuck) + 1);
  return event <= Event::kStuck ? kNames[static_cast<std::size_t>(event)] : "?";
}

const char* action_name(Action action) {
  static constexpr const char* kNames[] = {"nothing",  "go on",   "ask",   "undo",   "revoke",
                                           "finalize", "destroy", "abort", "give up"};
  static_assert(std::size(kNames) == static_cast<std::size_t>(Action::kGiveUp) + 1);
  return action <= Action::kGiveUp ? kNames[static_cast<std::size_t>(action)] : "?";
}

Decision decide(State state, Event event, ncclResult_t result, Keeping keeping) {
  if (state == State::kGone) return {state, Action::kNone, "it is gone"};
  const bool aborting = state == State::kAborting;
  switch (event) {
    case Event::kAnswer:
      return answered(state, result);
    case Event::kAllShrunk:
      if (state == State::kShrinking) return {State::kReady, Action::kGoOn, "all ranks are there"};
      break;
    case Event::kNotShrunk:
      if (state == State::kShrinking) return {State::kInit, Action::kUndo, "another rank's is not there"};
      break;
    case Event::kExpired:
      // An abort has no end but its own, or that it is given up.
      if (aborting) return {state, Action::kNone, "it is aborted anyway"};
      if (state == State::kShrinking) return {State::kInit, Action::kUndo, "its deadline has passed"};
      return stopped(state, keeping, "its deadline has passed");
    case Event::kClosed:
    case Event::kParted:
      if (aborting) return {state, Action::kNone, "it is aborted anyway"};
      if (state == State::kRevoking || state == State::kKept)
        return {state, Action::kNone, "its use has ended"};
      if (state == State::kReady && event == Event::kParted && keeping != Keeping::kNever)
        return {State::kKept, Action::kNone, "it was closed, and nothing is under way"};
      return stopped(state, keeping, "it was closed");
    case Event::kLetGo:
      return let_go(state, keeping);
    case Event::kHandedOver:
      if (state == State::kKept) return {State::kGone, Action::kNone, "another has taken it over"};
      break;
    case Event::kReleased:
      if (aborting || state == State::kLeaving) return {State::kGone, Action::kNone, "NCCL has let go of it"};
      break;
    case Event::kStuck:
      return {State::kGone, Action::kGiveUp, "a call of NCCL does not return"};
  }
  return {state, Action::kNone, "that does not happen now"};
}

}  // namespace paceline::nccl

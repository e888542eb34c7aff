#include "runtime/nccl/states.h"

#include "base/text.h"

namespace paceline::nccl {

namespace {

Decision answered(State state, ncclResult_t result) {
  const bool fine = result == ncclSuccess, open = result == ncclInProgress;
  switch (state) {
    case State::kInit:
    case State::kReady:
      if (fine) return {State::kReady, Action::kGoOn, state == State::kInit ? "all ranks are there" : "done"};
      if (open) return {state, Action::kAsk, "it goes on"};
      return {State::kAborting, Action::kAbort, str_cat("NCCL failed with ", static_cast<int>(result))};
    case State::kLeaving:
      if (fine) return {State::kLeaving, Action::kDestroy, "all that was enqueued is done"};
      if (open) return {State::kLeaving, Action::kAsk, "it goes on"};
      return {State::kAborting, Action::kAbort, str_cat("NCCL failed with ", static_cast<int>(result))};
    case State::kAborting:
      return {state, Action::kNone, "it is aborted anyway"};
    case State::kGone:
      break;
  }
  return {state, Action::kNone, "it is gone"};
}

}  // namespace

const char* state_name(State state) {
  switch (state) {
    case State::kInit:
      return "init";
    case State::kReady:
      return "ready";
    case State::kLeaving:
      return "leaving";
    case State::kAborting:
      return "aborting";
    case State::kGone:
      return "gone";
  }
  return "?";
}

const char* happening_name(Happening happening) {
  switch (happening) {
    case Happening::kAnswer:
      return "answer";
    case Happening::kExpired:
      return "expired";
    case Happening::kClosed:
      return "closed";
    case Happening::kLetGo:
      return "let go";
    case Happening::kReleased:
      return "released";
    case Happening::kStuck:
      return "stuck";
  }
  return "?";
}

const char* action_name(Action action) {
  switch (action) {
    case Action::kNone:
      return "nothing";
    case Action::kGoOn:
      return "go on";
    case Action::kAsk:
      return "ask";
    case Action::kFinalize:
      return "finalize";
    case Action::kDestroy:
      return "destroy";
    case Action::kAbort:
      return "abort";
    case Action::kGiveUp:
      return "give up";
  }
  return "?";
}

Decision decide(State state, Happening happening, ncclResult_t result) {
  if (state == State::kGone) return {state, Action::kNone, "it is gone"};
  const bool aborting = state == State::kAborting;
  switch (happening) {
    case Happening::kAnswer:
      return answered(state, result);
    case Happening::kExpired:
      // An abort has no end but its own, or that it is given up.
      if (aborting) return {state, Action::kNone, "it is aborted anyway"};
      return {State::kAborting, Action::kAbort, "its deadline has passed"};
    case Happening::kClosed:
      if (aborting) return {state, Action::kNone, "it is aborted anyway"};
      return {State::kAborting, Action::kAbort, "it was closed"};
    case Happening::kLetGo:
      if (state == State::kReady) return {State::kLeaving, Action::kFinalize, "nobody needs it"};
      if (state == State::kInit) return {State::kAborting, Action::kAbort, "nobody needs it any more"};
      return {state, Action::kNone, "it ends anyway"};
    case Happening::kReleased:
      if (aborting || state == State::kLeaving) return {State::kGone, Action::kNone, "NCCL has let go of it"};
      break;
    case Happening::kStuck:
      return {State::kGone, Action::kGiveUp, "a call of NCCL does not return"};
  }
  return {state, Action::kNone, "that does not happen now"};
}

}  // namespace paceline::nccl

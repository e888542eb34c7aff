#pragma once

// The life of one NCCL communicator: what is done next, from its state and what happened. Pure.
//
//   init ------> ready ------> leaving ------> gone     the owner lets go of it, nothing is under way
//     \            |             /              ^
//      `-------> aborting <-----'               |        an error, a deadline, somebody closes it
//                  `----------------------------'        ncclCommAbort has returned, or is given up
//
// Of the calls of one communicator, each begins when the one before has returned and its result is no more
// ncclInProgress: kAsk is answered by ncclCommGetAsyncError. Only an abort may come earlier.

#include <nccl.h>

#include <cstdint>
#include <string>

namespace paceline::nccl {

enum class State : std::uint8_t { kInit, kReady, kLeaving, kAborting, kGone };
const char* state_name(State state);

enum class Happening : std::uint8_t {
  kAnswer,    // a call, or ncclCommGetAsyncError after it, gave `result`
  kExpired,   // what is under way has not come to its end by its deadline
  kClosed,    // somebody closed it, or a peer is gone
  kLetGo,     // its owner needs it no longer, and nothing is under way
  kReleased,  // ncclCommDestroy or ncclCommAbort returned: NCCL knows it no more
  kStuck,     // a call of NCCL has not returned by its limit
};
const char* happening_name(Happening happening);

enum class Action : std::uint8_t {
  kNone,
  kGoOn,      // the next call may be made
  kAsk,       // not yet: ask again
  kFinalize,  // ncclCommFinalize
  kDestroy,   // ncclCommDestroy
  kAbort,     // ncclCommAbort
  kGiveUp,    // leave NCCL's memory and the thread in it behind
};
const char* action_name(Action action);

struct Decision {
  State next;
  Action action;
  std::string reason;
};

// `result` is of kAnswer.
Decision decide(State state, Happening happening, ncclResult_t result = ncclSuccess);

}  // namespace paceline::nccl

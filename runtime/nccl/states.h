#pragma once

// The life of one NCCL communicator: what is done next, from its state and what happened. Pure.
//
//   shrinking ---> init ---> ready ---> leaving ---> gone   the owner lets go, nothing is under way
//      |             |        | |          |          ^
//      |             |        | `-> revoking ---> kept     the next view's may be shrunk from it; its
//      |             |        |         |          |  |    thread then takes it over: gone
//      `-------------+--------+-> aborting <-------'  |    an error, a deadline, somebody closes it
//                                    `----------------+    ncclCommAbort has returned, or is given up
//
// A shrink that is all ranks' is ready, without an init. What is to be kept goes from ready to kept where
// nothing is under way, over revoking else.
//
// Of the calls of one communicator, each begins when the one before has returned and its result is no more
// ncclInProgress: kAsk is answered by ncclCommGetAsyncError. Only an abort may come earlier. (ncclCommRevoke
// would be allowed to, but NCCL 2.28.9 then uses the job that it has freed.)

#include <nccl.h>

#include <cstdint>
#include <string>

namespace paceline::nccl {

enum class State : std::uint8_t {
  kShrinking,  // from its parent, which it has taken over
  kInit,
  kReady,
  kRevoking,  // what is under way is stopped
  kKept,      // nothing is under way, or ever will be
  kLeaving,
  kAborting,
  kGone
};
const char* state_name(State state);

enum class Event : std::uint8_t {
  kAnswer,      // a call, or ncclCommGetAsyncError after it, gave `result`
  kAllShrunk,   // all ranks say that theirs is there
  kNotShrunk,   // one of them says that it is not
  kExpired,     // what is under way has not come to its end by its deadline; kept: nobody came for it
  kClosed,      // somebody closed it, a peer is gone, or an operation failed
  kParted,      // the same where nothing is under way
  kLetGo,       // its owner needs it no longer, and nothing is under way
  kHandedOver,  // another thread has it now
  kReleased,    // ncclCommDestroy or ncclCommAbort returned: NCCL knows it no more
  kStuck,       // a call of NCCL has not returned by its limit
};
const char* happening_name(Event event);

// Whether it is to be kept when its use has ended.
enum class Keeping : std::uint8_t {
  kNever,
  kIdle,    // where nothing is under way: else it can't be stopped but by an abort
  kAlways,  // what is under way is revoked
};

enum class Action : std::uint8_t {
  kNone,
  kGoOn,      // the next call may be made
  kAsk,       // not yet: ask again
  kUndo,      // ncclCommAbort of parent and child, and then init
  kRevoke,    // ncclCommRevoke
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
Decision decide(State state, Event event, ncclResult_t result = ncclSuccess,
                Keeping keeping = Keeping::kNever);

}  // namespace paceline::nccl

#pragma once

// A libnccl.so.2 of the tests, that a test opens by its path: ranks are threads of the test, each with a GPU
// of tests/support/fake_cuda of its own, and collectives happen in the order of its streams, when all ranks'
// streams have come to them. Sums are folded in rank order (collective/reduce.h).
// Communicators must be non-blocking: what was begun is in progress for some questions
// (ncclCommGetAsyncError), and only then is a collective in its stream. An abort ends this rank's collectives
// and nobody else's. It tells of what NCCL forbids and seldom notices: a call while another is in progress,
// two threads in one communicator, one used after its end, one destroyed that was not finalized, ranks whose
// calls differ, memory that is not the GPU's; of shrinks: one that the excluded call, ranks that exclude
// different ones, a parent at work, one that is left afterwards and not aborted, a child that shares with a
// parent that is aborted. Thread-safe; of control() all but the hooks is set while no call is under way.

#include <nccl.h>

#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace paceline::fake_nccl {

enum class Phase { kInit, kIdle, kCollective, kFinalizing, kFinalized, kRevoking, kShrinking };

// What a test sets while other threads may be asking it.
template <typename Function>
class Hook {
 public:
  Hook() = default;
  Hook(const Hook& other) : function_(other.get()) {}
  Hook& operator=(const Hook& other) { return *this = other.get(); }
  Hook& operator=(std::function<Function> function) {
    const std::lock_guard lock(mutex_);
    function_ = std::move(function);
    return *this;
  }
  std::function<Function> get() const {
    const std::lock_guard lock(mutex_);
    return function_;
  }

 private:
  mutable std::mutex mutex_;
  std::function<Function> function_;
};

struct Control {
  int version = 22809;
  // Asked at the beginning of every call: what is not ncclSuccess is its result, and nothing is done.
  Hook<ncclResult_t(const std::string& call)> fail;
  // Then: does this call not return until release()?
  Hook<bool(const std::string& call)> hang;
  // Asked by every ncclCommGetAsyncError, of its communicator: what it is to tell instead; ncclNumResults:
  // what is the case.
  Hook<ncclResult_t(Phase phase, int rank)> late;
  int questions = 2;            // that are answered with ncclInProgress
  bool gpus_move = true;        // else no collective ever ends
  Hook<bool(int rank)> slow;    // is this rank's GPU not at the end of what others' have done?
  bool finalize_waits = false;  // for all ranks
};

struct Counts {
  std::size_t communicators = 0;       // that are there now
  std::size_t inits = 0, shrinks = 0;  // that made one, or began to
  std::size_t shrunk = 0;              // of these, that were told of as done
  std::size_t aborts = 0, destroys = 0, revokes = 0, ids = 0;
  std::size_t collectives = 0, enqueued = 0;  // enqueued: they are in their streams
  std::size_t first = 0;                      // of collectives, that are in a stream of the greatest priority
  std::size_t hanging = 0;                    // calls, now
};

class FakeNccl {
 public:
  virtual Control& control() = 0;
  virtual Counts counts() = 0;
  virtual std::vector<std::string> problems() = 0;
  // Calls that hang return, now and later; waits until all have.
  virtual void release() = 0;
  // Until `calls` hang at once.
  virtual void wait_for_hanging(std::size_t calls) = 0;
  // As when it was loaded; what is still there is forgotten.
  virtual void reset() = 0;

 protected:
  ~FakeNccl() = default;
};

// The library exports this.
using Get = FakeNccl* (*)();
inline constexpr char kGet[] = "paceline_fake_nccl";

}  // namespace paceline::fake_nccl

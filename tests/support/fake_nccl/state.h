#pragma once

// What the calls of this library share: all communicators, what tests have set, and the lock over both.

#include <nccl.h>

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "tests/support/fake_cuda/fake_cuda.h"
#include "tests/support/fake_nccl/cliques.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

// What NCCL's opaque pointers point to.
struct ncclComm {
  std::shared_ptr<paceline::fake_nccl::Clique> clique;
  int rank = 0;
  paceline::fake_nccl::Phase phase = paceline::fake_nccl::Phase::kInit;
  int questions = 0;                                    // still answered with ncclInProgress
  int inside = 0;                                       // calls under way
  bool stopped = false, revoked = false, gone = false;  // stopped: its collectives end
  std::size_t collectives = 0, ended = 0;
  std::function<void()> launch;  // of the collective that is in progress

  // Of a parent: the child that it is shrunk to, where NCCL is to write it, and whether they share.
  std::shared_ptr<ncclComm> child;
  ncclComm_t* child_at = nullptr;
  bool shrunk = false, shares = false;
};

namespace paceline::fake_nccl {

struct State {
  Control control;
  std::map<std::string, std::shared_ptr<Clique>> cliques;         // by their ids
  std::map<ncclComm_t, std::shared_ptr<ncclComm>> communicators;  // also those that are gone
  std::set<std::string> ids;
  std::vector<std::string> problems;
  Counts counts;
  bool released = false;
};
State& state();
std::mutex& lock();
std::condition_variable& changed();
// Never called while the lock is held: collectives run under its lock and take ours.
fake_cuda::FakeCuda& gpu();

// The lock is held for this and what follows, but asked().
ncclResult_t problem(ncclResult_t result, const std::string& what);
bool in_progress(const ncclComm& c);
// Where nothing else may be under way.
ncclResult_t must_be_idle(const ncclComm& c, const char* call);
ncclResult_t must_be_non_blocking(const ncclConfig_t* config);
// A rank of `clique`, which is not there yet.
std::shared_ptr<ncclComm> add_communicator(std::shared_ptr<Clique> clique, int rank);

// What this call is to give before it does anything.
ncclResult_t asked(const char* call);

// A call on a communicator, from its beginning to its end.
class Visit {
 public:
  Visit(ncclComm_t communicator, const char* call);
  ~Visit();
  const std::shared_ptr<ncclComm>& known() const { return known_; }

 private:
  std::shared_ptr<ncclComm> known_;
};

// The beginning of a call on `communicator`, which is `name` from here on.
#define BEGIN_CALL(communicator, name)                   \
  const Visit visit(communicator, __func__);             \
  const std::shared_ptr<ncclComm>& name = visit.known(); \
  if (name == nullptr) return ncclInvalidArgument;       \
  if (const ncclResult_t wanted = asked(__func__); wanted != ncclSuccess) return wanted

// What a shrink is told when its parent is asked for the last time, or aborted.
void tell_child(ncclComm& parent);

}  // namespace paceline::fake_nccl

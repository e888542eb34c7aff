#include "tests/support/fake_nccl/fake_nccl.h"

#include <cstring>
#include <utility>

#include "tests/support/fake_nccl/state.h"

using namespace paceline::fake_nccl;  // NOLINT: this file is the library of that name

namespace {

struct Grouped {
  ncclComm_t communicator = nullptr;
  cudaStream_t stream = nullptr;
  std::vector<Part> parts;
};
thread_local int group_depth = 0;
thread_local Grouped group;

class Library final : public FakeNccl {
 public:
  Control& control() override { return state().control; }
  Counts counts() override {
    const std::lock_guard held(lock());
    return state().counts;
  }
  std::vector<std::string> problems() override {
    const std::lock_guard held(lock());
    return state().problems;
  }
  void release() override {
    std::unique_lock held(lock());
    state().released = true;
    changed().notify_all();
    changed().wait(held, [] { return state().counts.hanging == 0; });
  }
  void wait_for_hanging(std::size_t calls) override {
    std::unique_lock held(lock());
    changed().wait(held, [&] { return state().counts.hanging >= calls; });
  }
  void reset() override {
    const std::lock_guard held(lock());
    for (auto& [handle, communicator] : state().communicators) communicator->launch = nullptr;
    state() = State();
  }
};

ncclResult_t launch(const std::shared_ptr<ncclComm>& c, std::vector<Part> parts, cudaStream_t stream) {
  const bool first = gpu().priority(stream) == paceline::fake_cuda::kGreatestPriority;
  const std::lock_guard held(lock());
  ++state().counts.collectives;
  if (first) ++state().counts.first;
  const std::size_t index = c->collectives++;
  c->phase = Phase::kCollective;
  c->questions = state().control.questions;
  c->launch = [c, index, parts = std::move(parts), stream] {
    const auto gate = [c, index, parts] {
      const std::lock_guard running(lock());
      if (c->stopped) return true;
      std::string differ;
      const auto slow = state().control.slow.get();
      const bool done = state().control.gpus_move && c->clique->arrive(c->rank, index, parts, differ) &&
                        !(slow && slow(c->rank));
      if (done) ++c->ended;
      if (!differ.empty()) state().problems.push_back(differ);
      return done;
    };
    const bool added = gpu().add_gate(stream, gate);
    const std::lock_guard again(lock());
    if (!added) problem(ncclInvalidArgument, "a collective in no stream");
    ++state().counts.enqueued;
  };
  return ncclInProgress;
}

std::size_t most_bytes(const Part& part, int world, bool sends) {
  const std::size_t bytes = part.count * element_bytes(part.type);
  const bool whole = part.what == (sends ? What::kReduceScatter : What::kAllGather);
  return whole ? bytes * static_cast<std::size_t>(world) : bytes;
}

ncclResult_t collective(const char* call, ncclComm_t communicator, Part part, cudaStream_t stream) {
  const Visit visit(communicator, call);
  const std::shared_ptr<ncclComm>& c = visit.known();
  if (c == nullptr) return ncclInvalidArgument;
  if (const ncclResult_t wanted = asked(call); wanted != ncclSuccess) return wanted;
  const int world = c->clique->size();
  const bool ours = gpu().holds(part.send, most_bytes(part, world, true)) &&
                    gpu().holds(part.receive, most_bytes(part, world, false));
  {
    const std::lock_guard held(lock());
    if (const ncclResult_t busy = must_be_idle(*c, call); busy != ncclSuccess) return busy;
    if (c->stopped) return problem(ncclInvalidUsage, std::string(call) + " after a revoke or a shrink");
    if (!ours) return problem(ncclInvalidArgument, std::string(call) + ": memory that is not the GPU's");
    if (part.root < 0 || part.root >= world) return problem(ncclInvalidArgument, "no such root");
  }
  if (group_depth == 0) return launch(c, {part}, stream);
  group.communicator = communicator;
  group.stream = stream;
  group.parts.push_back(part);
  return ncclInProgress;
}

ncclResult_t join(const char* call, ncclComm_t* communicator, int world, int rank, const std::string& key,
                  const ncclConfig_t* config) {
  *communicator = nullptr;
  if (const ncclResult_t wanted = asked(call); wanted != ncclSuccess) return wanted;
  const int device = gpu().current_device();
  const std::lock_guard held(lock());
  State& s = state();
  if (const ncclResult_t wrong = must_be_non_blocking(config); wrong != ncclSuccess) return wrong;
  if (device < 0) return problem(ncclUnhandledCudaError, std::string(call) + " without a context");
  if (rank < 0 || rank >= world) return problem(ncclInvalidArgument, "no such rank");
  for (std::size_t at = 0; at < key.size(); at += sizeof(ncclUniqueId)) {
    if (!s.ids.contains(key.substr(at, sizeof(ncclUniqueId))))
      return problem(ncclInvalidArgument, "an id that was not made here");
  }
  auto& clique = s.cliques[key];
  if (clique == nullptr) clique = std::make_shared<Clique>(world);
  int& place = clique->devices[static_cast<std::size_t>(rank)];
  if (clique->size() != world || place != Clique::kNobody)
    return problem(ncclInvalidUsage, "another world, or a rank that is there already");
  for (const int other : clique->devices) {
    if (other == device) return problem(ncclInvalidUsage, "two ranks on one GPU");
  }
  place = device;
  *communicator = add_communicator(clique, rank).get();
  ++s.counts.inits;
  return ncclInProgress;
}

std::string text_of(const ncclUniqueId& id) {
  return {id.internal, sizeof id.internal};
}

}  // namespace

EXPORTED FakeNccl* paceline_fake_nccl() {
  static auto* const library = new Library;
  return library;
}

EXPORTED ncclResult_t ncclGetVersion(int* version) {
  *version = state().control.version;
  return ncclSuccess;
}
EXPORTED const char* ncclGetErrorString(ncclResult_t result) {
  return result == ncclRemoteError ? "remote process exited or there was a network error" : "some error";
}
EXPORTED const char* ncclGetLastError(ncclComm_t) {
  return "the last words";
}

EXPORTED ncclResult_t ncclGetUniqueId(ncclUniqueId* id) {
  if (const ncclResult_t wanted = asked(__func__); wanted != ncclSuccess) return wanted;
  const std::lock_guard held(lock());
  std::string text = "id " + std::to_string(++state().counts.ids);
  text.resize(sizeof id->internal, '.');
  std::memcpy(id->internal, text.data(), text.size());
  state().ids.insert(text);
  return ncclSuccess;
}
EXPORTED ncclResult_t ncclCommInitRankConfig(ncclComm_t* communicator, int world, ncclUniqueId id, int rank,
                                             ncclConfig_t* config) {
  return join(__func__, communicator, world, rank, text_of(id), config);
}
#if defined(PACELINE_FAKE_NCCL_SCALABLE)
EXPORTED ncclResult_t ncclCommInitRankScalable(ncclComm_t* communicator, int world, int rank, int id_count,
                                               ncclUniqueId* ids, ncclConfig_t* config) {
  std::string key;
  for (int i = 0; i < id_count; ++i) key += text_of(ids[i]);
  return join(__func__, communicator, world, rank, key, config);
}
#endif

EXPORTED ncclResult_t ncclCommGetAsyncError(ncclComm_t communicator, ncclResult_t* told) {
  BEGIN_CALL(communicator, c);
  std::unique_lock held(lock());
  const Phase phase = c->phase;
  const int rank = c->rank;
  const auto late = state().control.late.get();
  held.unlock();
  *told = late ? late(phase, rank) : ncclNumResults;
  if (*told != ncclNumResults) return ncclSuccess;
  held.lock();
  *told = ncclInProgress;
  if (c->questions > 0) {
    --c->questions;
    return ncclSuccess;
  }
  if (c->phase == Phase::kInit && !c->clique->complete()) return ncclSuccess;
  if (c->phase == Phase::kShrinking) {
    if (!c->clique->child->complete()) return ncclSuccess;
    tell_child(*c);
    ++state().counts.shrunk;
  }
  c->clique->ended[static_cast<std::size_t>(c->rank)] = c->phase == Phase::kFinalizing;
  if (c->phase == Phase::kFinalizing && state().control.finalize_waits && !c->clique->all_ended())
    return ncclSuccess;
  const std::function<void()> launch = std::exchange(c->launch, nullptr);
  held.unlock();
  if (launch) launch();
  held.lock();
  if (in_progress(*c)) c->phase = c->phase == Phase::kFinalizing ? Phase::kFinalized : Phase::kIdle;
  *told = ncclSuccess;
  return ncclSuccess;
}

EXPORTED ncclResult_t ncclCommFinalize(ncclComm_t communicator) {
  BEGIN_CALL(communicator, c);
  const std::lock_guard held(lock());
  if (const ncclResult_t busy = must_be_idle(*c, __func__); busy != ncclSuccess) return busy;
  if (c->revoked || c->shrunk)
    return problem(ncclInvalidUsage, "what was revoked or shrunk is left, and not aborted");
  c->phase = Phase::kFinalizing;
  c->questions = state().control.questions;
  return ncclInProgress;
}
EXPORTED ncclResult_t ncclCommDestroy(ncclComm_t communicator) {
  BEGIN_CALL(communicator, c);
  const std::lock_guard held(lock());
  if (c->phase != Phase::kFinalized) return problem(ncclInvalidUsage, "destroyed, and not finalized");
  c->gone = true;
  ++state().counts.destroys;
  --state().counts.communicators;
  return ncclSuccess;
}
EXPORTED ncclResult_t ncclCommAbort(ncclComm_t communicator) {
  BEGIN_CALL(communicator, c);
  const std::lock_guard held(lock());
  c->stopped = c->gone = true;
  c->launch = nullptr;
  if (c->phase == Phase::kShrinking) {
    c->child->clique->devices[static_cast<std::size_t>(c->child->rank)] = Clique::kNobody;
    tell_child(*c);
  }
  if (c->shares && !c->child->gone) {
    c->child->stopped = true;
    problem(ncclInvalidUsage, "a parent is aborted whose child shares what it has");
  }
  c->clique->ended[static_cast<std::size_t>(c->rank)] = true;
  ++state().counts.aborts;
  --state().counts.communicators;
  return ncclSuccess;
}

EXPORTED ncclResult_t ncclGroupStart() {
  if (const ncclResult_t wanted = asked(__func__); wanted != ncclSuccess) return wanted;
  ++group_depth;
  return ncclSuccess;
}
EXPORTED ncclResult_t ncclGroupEnd() {
  const ncclResult_t wanted = asked(__func__);
  --group_depth;
  Grouped grouped = std::exchange(group, {});
  if (wanted != ncclSuccess) return wanted;
  if (grouped.parts.empty()) return ncclSuccess;
  const Visit visit(grouped.communicator, __func__);
  return visit.known() == nullptr ? ncclInvalidArgument
                                  : launch(visit.known(), std::move(grouped.parts), grouped.stream);
}

namespace {

Part part(What what, const void* send, void* receive, std::size_t count, ncclDataType_t type,
          ncclRedOp_t op = ncclSum, int root = 0) {
  return {what, static_cast<const std::byte*>(send), static_cast<std::byte*>(receive), count, type, op, root};
}

}  // namespace

EXPORTED ncclResult_t ncclAllReduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                                    ncclRedOp_t op, ncclComm_t communicator, cudaStream_t stream) {
  return collective(__func__, communicator, part(What::kAllReduce, send, receive, count, type, op), stream);
}
EXPORTED ncclResult_t ncclReduce(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                                 ncclRedOp_t op, int root, ncclComm_t communicator, cudaStream_t stream) {
  return collective(__func__, communicator, part(What::kReduce, send, receive, count, type, op, root),
                    stream);
}
EXPORTED ncclResult_t ncclBroadcast(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                                    int root, ncclComm_t communicator, cudaStream_t stream) {
  return collective(__func__, communicator, part(What::kBroadcast, send, receive, count, type, ncclSum, root),
                    stream);
}
EXPORTED ncclResult_t ncclAllGather(const void* send, void* receive, std::size_t count, ncclDataType_t type,
                                    ncclComm_t communicator, cudaStream_t stream) {
  return collective(__func__, communicator, part(What::kAllGather, send, receive, count, type), stream);
}
EXPORTED ncclResult_t ncclReduceScatter(const void* send, void* receive, std::size_t count,
                                        ncclDataType_t type, ncclRedOp_t op, ncclComm_t communicator,
                                        cudaStream_t stream) {
  return collective(__func__, communicator, part(What::kReduceScatter, send, receive, count, type, op),
                    stream);
}

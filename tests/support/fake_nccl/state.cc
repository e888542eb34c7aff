#include "tests/support/fake_nccl/state.h"
#include "tests/support/paths.h"

#include <dlfcn.h>

#include <utility>

namespace paceline::fake_nccl {

std::mutex& lock() {
  static auto* const lock = new std::mutex;
  return *lock;
}
std::condition_variable& changed() {
  static auto* const changed = new std::condition_variable;
  return *changed;
}
State& state() {
  static auto* const state = new State;
  return *state;
}

fake_cuda::FakeCuda& gpu() {
  static fake_cuda::FakeCuda* const library = [] {
    void* const handle = dlopen(binary_path(PACELINE_FAKE_CUDA).c_str(), RTLD_NOW);
    return reinterpret_cast<fake_cuda::Get>(dlsym(handle, fake_cuda::kGet))();
  }();
  return *library;
}

ncclResult_t problem(ncclResult_t result, const std::string& what) {
  state().problems.push_back(what);
  return result;
}

bool in_progress(const ncclComm& c) {
  return c.phase != Phase::kIdle && c.phase != Phase::kFinalized;
}

ncclResult_t must_be_idle(const ncclComm& c, const char* call) {
  if (in_progress(c)) return problem(ncclInvalidUsage, std::string(call) + " while another is in progress");
  if (c.phase == Phase::kFinalized) return problem(ncclInvalidUsage, std::string(call) + " after the end");
  return ncclSuccess;
}

ncclResult_t must_be_non_blocking(const ncclConfig_t* config) {
  const ncclConfig_t right = NCCL_CONFIG_INITIALIZER;
  if (config == nullptr || config->size != right.size || config->magic != right.magic ||
      config->version != right.version || config->blocking != 0)
    return problem(ncclInvalidArgument, "not the configuration of a non-blocking communicator");
  return ncclSuccess;
}

std::shared_ptr<ncclComm> add_communicator(std::shared_ptr<Clique> clique, int rank) {
  auto made = std::make_shared<ncclComm>();
  made->clique = std::move(clique);
  made->rank = rank;
  made->questions = state().control.questions;
  state().communicators[made.get()] = made;
  ++state().counts.communicators;
  return made;
}

ncclResult_t asked(const char* call) {
  std::unique_lock held(lock());
  const auto fail = state().control.fail.get();
  const auto hang = state().control.hang.get();
  held.unlock();
  if (const ncclResult_t wanted = fail ? fail(call) : ncclSuccess; wanted != ncclSuccess) return wanted;
  if (!hang || !hang(call)) return ncclSuccess;
  held.lock();
  ++state().counts.hanging;
  changed().notify_all();
  changed().wait(held, [] { return state().released; });
  --state().counts.hanging;
  changed().notify_all();
  return ncclSuccess;
}

Visit::Visit(ncclComm_t communicator, const char* call) {
  const std::lock_guard held(lock());
  const auto found = state().communicators.find(communicator);
  if (found == state().communicators.end() || found->second->gone) {
    problem(ncclInvalidArgument, std::string(call) + " on a communicator that is gone");
    return;
  }
  known_ = found->second;
  if (++known_->inside > 1)
    problem(ncclInvalidUsage, std::string(call) + ": two threads in one communicator");
}

Visit::~Visit() {
  const std::lock_guard held(lock());
  if (known_ != nullptr) --known_->inside;
}

}  // namespace paceline::fake_nccl

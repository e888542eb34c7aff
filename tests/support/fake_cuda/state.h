#pragma once

// What the calls of the emulated driver share.

#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/fake_cuda/fake_cuda.h"
#include "tests/support/fake_cuda/memory.h"
#include "tests/support/fake_cuda/streams.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace paceline::fake_cuda {

struct State {
  Control control;
  Memory device, pinned;
  std::map<std::uintptr_t, std::size_t> registered;  // memory of the host's, pinned
  Streams streams;
  struct Capture {
    std::thread::id by;
    CUstreamCaptureMode mode;
  };
  std::map<StreamId, Capture> captures;  // under way
  std::map<CUgraph, Streams::Graph> graphs;
  std::map<CUgraphExec, Streams::Graph> executable_graphs;
  std::map<std::string, std::size_t> calls;  // by name
  std::map<CUmodule, std::string> modules;  // with their images' bytes
  struct Function {
    const Kernel* kernel = nullptr;
    std::size_t shared_bytes = 49152;  // what a launch may ask for
  };
  std::map<CUfunction, Function> functions;
  std::map<CUdevice, int> contexts;  // how often each is held
  std::uintptr_t next = 0x10;
  std::vector<std::string> problems;
  std::size_t kernels_run = 0;
  std::map<std::string, std::size_t> runs;  // by kernel
  Traffic traffic;
  CUresult failed = CUDA_SUCCESS;  // of a kernel: what every call gives from then on

  template <typename Handle>
  Handle handle() {
    next += 16;
    return reinterpret_cast<Handle>(next);
  }
  bool is_pinned(const void* address, std::size_t bytes) const {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    const auto after = registered.upper_bound(at);
    if (after != registered.begin()) {
      const auto& [begin, size] = *std::prev(after);
      if (at + bytes <= begin + size) return true;
    }
    return pinned.contains(address, bytes);
  }
  CUresult problem(CUresult result, std::string what) {
    problems.push_back(std::move(what));
    return result;
  }
};

State& state();
std::mutex& lock();
CUcontext& current_context();  // of this thread

// CUDA_SUCCESS, but where a capture forbids this thread what may disturb one: that capture gives no graph
// then.
CUresult unsafe_in_capture();

// All that the stream was given is done. `held` is let go of while other threads must open a gate.
void finish(StreamId stream, std::unique_lock<std::mutex>& held);

// What this call is to give before it does anything; CUDA_SUCCESS: it goes on. The lock is held.
CUresult asked(const char* call);
// The same for those that work in a context.
CUresult asked_in_context(const char* call);

template <typename Id, typename Handle>
Id id(Handle handle) {
  return static_cast<Id>(reinterpret_cast<std::uintptr_t>(handle));
}

}  // namespace paceline::fake_cuda

// For calls that make, free or wait for something: see cuThreadExchangeStreamCaptureMode.
#define REFUSE_IN_CAPTURE()                                                                         \
  if (const CUresult refused = ::paceline::fake_cuda::unsafe_in_capture(); refused != CUDA_SUCCESS) \
  return refused

// At the beginning of a call. The test may set `fail`, and it runs unlocked.
#define BEGIN_CALL(how)                                                                                    \
  if (const CUresult wanted = ::paceline::fake_cuda::how(__func__); wanted != CUDA_SUCCESS) return wanted; \
  std::unique_lock held(::paceline::fake_cuda::lock())

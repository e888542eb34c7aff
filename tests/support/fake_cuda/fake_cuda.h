#pragma once

// A libcuda.so.1 of the tests, that a test opens by its path: the driver's calls, with kernels that run on
// the CPU (block.h) over memory with closed ends (memory.h). It does what CUDA allows and a GPU seldom does:
//   - streams do nothing until somebody waits for them, or asks: what misses a wait reads what was there
//   before
//   - a failed kernel's error comes later, from other calls, and stays
//   - calls without a current context fail; images are looked at for the kernels that are asked of them
//   - of a stream that captures nothing is done; what a capture does not take spoils it, as does each call of
//   its thread that makes, frees or waits for something. A capture is of one stream: none forks
// Thread-safe; kernels run under one lock, on the thread that waits.

#include <cuda.h>

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tests/support/fake_cuda/block.h"

namespace paceline::fake_cuda {

struct Control {
  int version = 13000;  // cuDriverGetVersion
  CUresult init = CUDA_SUCCESS;
  int devices = 1;  // FAKE_CUDA_DEVICES says another
  int multiprocessors = 132;
  int capability = 90;  // compute capability, times ten
  std::size_t memory_bytes = std::size_t{1} << 30;  // of each device; FAKE_CUDA_MEMORY_MIB says another
  std::size_t shared_bytes = 232448;                // most that a block may have, where it is asked for
  // Asked before every call but the above: what is not CUDA_SUCCESS is its result, and nothing is done. Null:
  // the call that FAKE_CUDA_REFUSES names is not supported, for programs that the tests start.
  std::function<CUresult(const std::string& call)> fail;
  Order order = Order::kAscending;  // of blocks, and of the threads of each
};

inline constexpr int kGreatestPriority = -5;  // of streams

// What is there now.
struct Counts {
  std::size_t allocations = 0, pinned = 0,  // pinned: made so, or registered
      streams = 0, events = 0, modules = 0, contexts = 0,
              graphs = 0;  // executable or not
};

// What kernels have loaded from and stored to the device's memory, each access counted, whether of a line
// that a GPU would find in its caches or not. Zeros but in the library that counts (traffic.cc).
struct Traffic {
  std::size_t loaded = 0, stored = 0;  // bytes
  std::size_t threads = 0;             // that ran; counted always
};

class FakeCuda {
 public:
  virtual Control& control() = 0;
  virtual Counts counts() = 0;
  // What kernels and calls did that they may not, in words; since the last reset.
  virtual std::vector<std::string> problems() = 0;
  // What went wrong so far was meant to.
  virtual void forgive() = 0;
  virtual std::size_t kernels_run() = 0;
  virtual std::size_t runs_of(const std::string& kernel) = 0;
  // How often the driver's function of that name ("cuLaunchKernel") was called.
  virtual std::size_t calls_of(const std::string& call) = 0;
  virtual Traffic traffic() = 0;
  // For libraries of the tests that work on this GPU, too: whether all of it lies in one allocation of the
  // device; and work in a stream's order, which calls nothing of this library (false: there is no such
  // stream).
  virtual bool holds(const void* address, std::size_t bytes) = 0;
  virtual bool add(CUstream stream, std::function<void()> work) = 0;
  // A piece of work that is not done until `gate` says so, which is asked again and again.
  virtual bool add_gate(CUstream stream, std::function<bool()> gate) = 0;
  virtual int current_device() = 0;           // of this thread's context; -1 without
  virtual int priority(CUstream stream) = 0;  // kGreatestPriority to 0; 0 where there is no such stream
  // Of those libraries: what problems() tells.
  virtual void report(std::string problem) = 0;
  // As when it was loaded; what is still there is forgotten.
  virtual void reset() = 0;

 protected:
  ~FakeCuda() = default;
};

// The library exports this.
using Get = FakeCuda* (*)();
inline constexpr char kGet[] = "paceline_fake_cuda";

}  // namespace paceline::fake_cuda

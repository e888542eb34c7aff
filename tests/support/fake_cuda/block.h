#pragma once

// Runs one block of a kernel on the calling thread: every CUDA thread is a fiber, switched where it waits for
// others. Calls from kernels (self, barrier, exchange) are of the fiber that makes them.
//
// Stricter than a GPU: a barrier or a shuffle that only some threads reach, or that they reach at different
// lines, is an error and not a hang or luck; shuffles are of whole warps; shared memory ends where it was
// launched to end. The order in which threads run
// between two barriers is chosen by the test, so that a missing barrier shows: run twice, in both orders.
// Under ThreadSanitizer fibers are its own, ordered by barriers alone: it then finds accesses of one block
// that no barrier keeps apart.

#include <cstddef>
#include <cstdint>
#include <string>

namespace paceline::fake_cuda {

inline constexpr unsigned kMostThreads = 1024;  // of a block

struct Index {
  unsigned x = 0, y = 0, z = 0;
};

// Of the CUDA thread that runs now.
struct Self {
  Index thread, block;
  Index threads{1, 1, 1}, blocks{1, 1, 1};
};
const Self& self();
void barrier(const char* file, int line);
// Every lane gives its value and gets that of lane (its own ^ lanes).
std::uint64_t exchange(unsigned mask, std::uint64_t value, unsigned lanes, const char* file, int line);
// All lanes of a warp meet, each with something of its own; one of them has `work` done on all of it.
inline constexpr unsigned kLanes = 32;
using WarpWork = void (*)(void* const (&lanes)[kLanes]);
void meet(void* own, WarpWork work, const char* what);

// The block's shared memory that the launch gave it; 0xff at first, which is NaN.
std::byte* shared_memory();

// Copies that a thread begins, in groups: what is not waited for when it returns is an error.
struct Copy {
  void* to;
  const void* from;  // null: zeros
  unsigned bytes;
};
void begin_copy(const Copy& copy);
void commit_copies();
// The next of all but the last `groups`, in order; false: there is none.
bool next_copy(unsigned groups, Copy& copy);

struct Kernel {
  const char* name = nullptr;
  std::size_t parameter_bytes = 0;
  unsigned most_threads = 0;  // its launch bound
  void (*run)(const void* parameters) = nullptr;
};
// Kernels of this library make themselves known when it is loaded (PL_KERNEL).
struct Registration {
  explicit Registration(const Kernel& kernel);
};
const Kernel* find_kernel(const std::string& name);

enum class Order { kAscending, kDescending };

// Empty, or what went wrong: the block is then left where it was. REQUIRES: 0 < threads.x * y * z <=
// kMostThreads.
std::string run_block(const Kernel& kernel, const void* parameters, Index threads, Index blocks, Index block,
                      Order order, std::size_t shared_bytes = 0);

// The kernel that runs on this thread, or null: for messages about faults.
const char* running_kernel();

}  // namespace paceline::fake_cuda

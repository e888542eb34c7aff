#include "tests/support/fake_cuda/block.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "tests/support/fake_cuda/fiber.h"
#include "tests/support/fake_cuda/memory.h"

#if defined(PACELINE_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

// This file and fiber.cc are not instrumented for ThreadSanitizer: what a fiber and the scheduler tell each
// other is ordered by the switch between them. What kernels do is, by these annotations and nothing else.

namespace paceline::fake_cuda {

namespace {

void publish([[maybe_unused]] void* token) {
#if defined(PACELINE_THREAD_SANITIZER)
  __tsan_release(token);
#endif
}
void observe([[maybe_unused]] void* token) {
#if defined(PACELINE_THREAD_SANITIZER)
  __tsan_acquire(token);
#endif
}

enum class Wait { kNone, kBarrier, kShuffle, kMeeting };

struct Block;

// One CUDA thread.
struct Thread {
  Self self;
  Block* block = nullptr;
  Fiber* fiber = nullptr;  // while it is on its way
  bool begun = false, ended = false;
  Wait wait = Wait::kNone;
  const char* file = "";
  int line = 0;
  unsigned barriers = 0;    // passed so far
  std::uint64_t value = 0;  // of a shuffle: given, then got
  unsigned lanes = 0;
  void* own = nullptr;  // of a meeting
  WarpWork work = nullptr;
  std::vector<Copy> copies;
  std::size_t landed = 0;           // of the copies
  std::vector<std::size_t> groups;  // where each ends
  const char* error = nullptr;
};

struct Block {
  const Kernel* kernel = nullptr;
  const void* parameters = nullptr;
  std::vector<Thread> threads;
  std::byte* shared = nullptr;
  // Addresses that stand for a moment: what was written before is seen after.
  char begin = 0, end = 0, barrier[2] = {};
};

thread_local Thread* current = nullptr;
thread_local const Kernel* running = nullptr;

std::map<std::string, Kernel>& kernels() {
  static auto* const all = new std::map<std::string, Kernel>;
  return *all;
}

// Two CUDA threads on one fiber are in order for ThreadSanitizer: with it, each of a block has its own.
#if defined(PACELINE_THREAD_SANITIZER)
constexpr bool kOwnFibers = true;
#else
constexpr bool kOwnFibers = false;
#endif

// Fibers that wait for work, kept from block to block: their stacks are the greatest cost.
std::vector<std::unique_ptr<Fiber>>& idle() {
  thread_local std::vector<std::unique_ptr<Fiber>> fibers;
  return fibers;
}

void live(void* argument) {
  auto* const thread = static_cast<Thread*>(argument);
  observe(&thread->block->begin);
  thread->block->kernel->run(thread->block->parameters);
  if (thread->landed < thread->copies.size()) thread->error = "has returned and did not wait for its copies";
  publish(&thread->block->end);
  thread->ended = true;
}

void advance(Thread& thread) {
  current = &thread;
  if (!thread.begun) {
    thread.begun = true;
    if (idle().empty()) idle().push_back(std::make_unique<Fiber>());
    thread.fiber = idle().back().release();
    idle().pop_back();
    thread.fiber->start(&live, &thread);
  } else {
    thread.fiber->resume();
  }
  current = nullptr;
  if (thread.ended && !kOwnFibers) idle().emplace_back(std::exchange(thread.fiber, nullptr));
}

void wait(Thread& thread, Wait what, const char* file, int line) {
  thread.wait = what;
  thread.file = file;
  thread.line = line;
  thread.fiber->give_way();
}

bool together(const Thread& a, const Thread& b) {
  return a.wait == b.wait && a.line == b.line && a.file == b.file && a.work == b.work;
}

// Gives the lanes of each warp that are all at one shuffle their values. Whether there was any.
bool shuffle(std::vector<Thread>& threads) {
  bool any = false;
  for (std::size_t first = 0; first < threads.size(); first += kLanes) {
    const std::size_t lanes = std::min<std::size_t>(kLanes, threads.size() - first);
    bool all = true;
    for (std::size_t i = 0; i < lanes; ++i)
      all &= threads[first + i].wait == Wait::kShuffle && together(threads[first], threads[first + i]);
    if (!all) continue;
    std::uint64_t given[kLanes];
    for (std::size_t i = 0; i < lanes; ++i) given[i] = threads[first + i].value;
    for (std::size_t i = 0; i < lanes; ++i) {
      Thread& thread = threads[first + i];
      if ((i ^ thread.lanes) >= lanes) {
        thread.error = "shuffles with a lane that is not there";
      } else {
        thread.value = given[i ^ thread.lanes];
      }
      thread.wait = Wait::kNone;
    }
    any = true;
  }
  return any;
}

// The same for those that meet.
bool meet(std::vector<Thread>& threads) {
  bool any = false;
  for (std::size_t first = 0; first + kLanes <= threads.size(); first += kLanes) {
    bool all = true;
    for (std::size_t i = 0; i < kLanes; ++i)
      all &= threads[first + i].wait == Wait::kMeeting && together(threads[first], threads[first + i]);
    if (!all) continue;
    void* lanes[kLanes];
    for (std::size_t i = 0; i < kLanes; ++i) {
      lanes[i] = threads[first + i].own;
      threads[first + i].wait = Wait::kNone;
    }
    threads[first].work(lanes);
    any = true;
  }
  return any;
}

bool release_barrier(std::vector<Thread>& threads) {
  for (const Thread& thread : threads) {
    if (thread.wait != Wait::kBarrier || !together(threads[0], thread)) return false;
  }
  for (Thread& thread : threads) thread.wait = Wait::kNone;
  return true;
}

std::string where(const Thread& thread) {
  std::string text = "thread " + std::to_string(thread.self.thread.x);
  if (thread.error != nullptr) return text + " " + thread.error;
  if (thread.ended) return text + " has returned";
  if (thread.wait == Wait::kMeeting) return text + " waits to " + thread.file;
  return text + " waits at the " + (thread.wait == Wait::kBarrier ? "barrier" : "shuffle") + " of " +
         thread.file + ":" + std::to_string(thread.line);
}

// Two threads that are not where the other is.
std::string apart(const std::vector<Thread>& threads) {
  const Thread* waiting = &threads[0];
  for (const Thread& thread : threads) {
    if (!thread.ended) waiting = &thread;
  }
  for (const Thread& thread : threads) {
    if (thread.ended || !together(thread, *waiting)) return where(*waiting) + ", " + where(thread);
  }
  return where(*waiting) + " and is not let on";
}

std::string run(Block& block, Order order) {
  std::vector<Thread>& threads = block.threads;
  const std::size_t n = threads.size();
  for (;;) {
    bool all_ended = true;
    for (std::size_t k = 0; k < n; ++k) {
      Thread& thread = threads[order == Order::kAscending ? k : n - 1 - k];
      while (!thread.ended && thread.wait == Wait::kNone) {
        advance(thread);
        if (thread.error != nullptr) return where(thread);
      }
      all_ended &= thread.ended;
    }
    if (all_ended) return "";
    if (meet(threads)) continue;
    if (shuffle(threads)) {
      for (const Thread& thread : threads) {
        if (thread.error != nullptr) return where(thread);
      }
      continue;
    }
    if (!release_barrier(threads)) return apart(threads);
  }
}

}  // namespace

const Self& self() {
  return current->self;
}

void barrier(const char* file, int line) {
  Thread& thread = *current;
  void* const token = &thread.block->barrier[thread.barriers++ % 2];
  publish(token);
  wait(thread, Wait::kBarrier, file, line);
  observe(token);
}

std::uint64_t exchange(unsigned mask, std::uint64_t value, unsigned lanes, const char* file, int line) {
  Thread& thread = *current;
  if (mask != 0xffffffffU) thread.error = "shuffles with a part of its warp, which is not emulated";
  thread.value = value;
  thread.lanes = lanes;
  wait(thread, Wait::kShuffle, file, line);
  return thread.value;
}

void meet(void* own, WarpWork work, const char* what) {
  Thread& thread = *current;
  thread.own = own;
  thread.work = work;
  wait(thread, Wait::kMeeting, what, 0);
  thread.work = nullptr;
}

std::byte* shared_memory() {
  return current->block->shared;
}

void begin_copy(const Copy& copy) {
  current->copies.push_back(copy);
}

void commit_copies() {
  current->groups.push_back(current->copies.size());
}

bool next_copy(unsigned groups, Copy& copy) {
  Thread& thread = *current;
  if (thread.groups.size() <= groups) return false;
  if (thread.landed == *(thread.groups.end() - 1 - groups)) return false;
  copy = thread.copies[thread.landed++];
  return true;
}

Registration::Registration(const Kernel& kernel) {
  kernels()[kernel.name] = kernel;
}

const Kernel* find_kernel(const std::string& name) {
  const auto found = kernels().find(name);
  return found == kernels().end() ? nullptr : &found->second;
}

const char* running_kernel() {
  return running == nullptr ? nullptr : running->name;
}

std::string run_block(const Kernel& kernel, const void* parameters, Index threads, Index blocks, Index block,
                      Order order, std::size_t shared_bytes) {
  static thread_local Memory memory;
  Block state{.kernel = &kernel, .parameters = parameters};
  if (shared_bytes > 0) state.shared = static_cast<std::byte*>(memory.allocate(shared_bytes));
  state.threads.resize(std::size_t{threads.x} * threads.y * threads.z);
  for (std::size_t i = 0; i < state.threads.size(); ++i) {
    const auto t = static_cast<unsigned>(i);
    Thread& thread = state.threads[i];
    thread.block = &state;
    thread.self = {.thread = {t % threads.x, t / threads.x % threads.y, t / threads.x / threads.y},
                   .block = block,
                   .threads = threads,
                   .blocks = blocks};
  }
  running = &kernel;
  publish(&state.begin);
  std::string problem = run(state, order);
  observe(&state.end);
  running = nullptr;
  // Those that never ended are left where they are.
  for (Thread& thread : state.threads) {
    std::unique_ptr<Fiber> fiber(std::exchange(thread.fiber, nullptr));
    if (fiber != nullptr && fiber->ended()) idle().push_back(std::move(fiber));
  }
  if (std::string beyond; state.shared != nullptr && memory.free(state.shared, beyond) && problem.empty())
    problem = beyond;
  if (problem.empty()) return "";
  return std::string(kernel.name) + ", block " + std::to_string(block.x) + ": " + problem;
}

}  // namespace paceline::fake_cuda

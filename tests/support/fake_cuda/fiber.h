#pragma once

// A thread of execution that gives way only by itself: a stack of its own, and what the sanitizers need to
// know of it. One thread of the host at a time; a fiber is resumed by the thread that made it.

#include <cstddef>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

namespace paceline::fake_cuda {

#if defined(__x86_64__)
using FiberContext = void*;  // its stack, with the registers on it
#else
using FiberContext = ucontext_t;
#endif

class Fiber {
 public:
  Fiber();
  // Of a fiber that has run to its end, or that will never run again.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // Runs work(argument) on this fiber until it ends or gives way. REQUIRES: the last work has ended.
  void start(void (*work)(void* argument), void* argument);
  // Goes on where it gave way.
  void resume();
  bool ended() const { return work_ == nullptr; }
  // Called on this fiber: back to who resumed it.
  void give_way();

 private:
  static void enter();
  [[noreturn]] void loop();
  void into();
  void out();

  FiberContext own_{}, host_{};
  std::byte* stack_ = nullptr;
  void (*work_)(void* argument) = nullptr;
  void* argument_ = nullptr;
  // AddressSanitizer's, while it does not run, and of who resumed it.
  [[maybe_unused]] void* fake_stack_ = nullptr;
  [[maybe_unused]] void* host_fake_stack_ = nullptr;
  [[maybe_unused]] const void* host_stack_ = nullptr;
  [[maybe_unused]] std::size_t host_stack_bytes_ = 0;
  // ThreadSanitizer's.
  [[maybe_unused]] void* watched_ = nullptr;
  [[maybe_unused]] void* host_watched_ = nullptr;
};

}  // namespace paceline::fake_cuda

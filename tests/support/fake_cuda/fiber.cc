#include "tests/support/fake_cuda/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif
#if defined(PACELINE_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#endif

#if defined(__x86_64__)
// Keeps what a call must keep on the stack, leaves the stack in *from, and goes on where `to` was left.
// swapcontext does the same with two system calls, which were most of the time of all tests of kernels.
extern "C" void paceline_switch_stack(void** from, void* to);
asm(R"(
.text
.type paceline_switch_stack, @function
paceline_switch_stack:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size paceline_switch_stack, .-paceline_switch_stack
)");
#endif

namespace paceline::fake_cuda {

namespace {

constexpr std::size_t kStackBytes = 256 * 1024;

thread_local Fiber* beginning = nullptr;  // the one that is resumed for the first time

std::size_t page() {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

void switch_context(FiberContext& from, FiberContext& to) {
#if defined(__x86_64__)
  paceline_switch_stack(&from, to);
#else
  ::swapcontext(&from, &to);
#endif
}

}  // namespace

Fiber::Fiber() {
  // The page below the stack stays closed: what runs over its end stops there.
  void* const memory = ::mmap(nullptr, kStackBytes + page(), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || ::mprotect(memory, page(), PROT_NONE) != 0) std::abort();
  stack_ = static_cast<std::byte*>(memory) + page();
#if defined(__x86_64__)
  // Six registers, and where to return to: enter(), with the stack as after a call.
  auto* const top = reinterpret_cast<std::uintptr_t*>(stack_ + kStackBytes);
  top[-2] = reinterpret_cast<std::uintptr_t>(&Fiber::enter);
  own_ = top - 8;
#else
  if (::getcontext(&own_) != 0) std::abort();
  own_.uc_stack.ss_sp = stack_;
  own_.uc_stack.ss_size = kStackBytes;
  own_.uc_link = nullptr;
  ::makecontext(&own_, &Fiber::enter, 0);
#endif
#if defined(PACELINE_THREAD_SANITIZER)
  watched_ = __tsan_create_fiber(0);
#endif
}

Fiber::~Fiber() {
#if defined(PACELINE_THREAD_SANITIZER)
  if (!ended()) {
    // What it did so far is seen by whoever goes on without it.
    void* const host = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(watched_, __tsan_switch_to_fiber_no_sync);
    __tsan_switch_to_fiber(host, 0);
  }
  __tsan_destroy_fiber(watched_);
#endif
  ::munmap(stack_ - page(), kStackBytes + page());
}

void Fiber::enter() {
  Fiber* const fiber = beginning;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(nullptr, &fiber->host_stack_, &fiber->host_stack_bytes_);
#endif
  fiber->loop();
}

void Fiber::loop() {
  for (;;) {
    work_(argument_);
    work_ = nullptr;
    out();
  }
}

void Fiber::start(void (*work)(void* argument), void* argument) {
  beginning = this;
  work_ = work;
  argument_ = argument;
  into();
}

void Fiber::resume() {
  into();
}

void Fiber::give_way() {
  out();
}

// No happens-before by the switch itself: what one CUDA thread wrote is for another to see after a barrier
// only.
void Fiber::into() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&host_fake_stack_, stack_, kStackBytes);
#endif
#if defined(PACELINE_THREAD_SANITIZER)
  host_watched_ = __tsan_get_current_fiber();
  __tsan_switch_to_fiber(watched_, __tsan_switch_to_fiber_no_sync);
#endif
  switch_context(host_, own_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(host_fake_stack_, nullptr, nullptr);
#endif
}

void Fiber::out() {
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fake_stack_, host_stack_, host_stack_bytes_);
#endif
#if defined(PACELINE_THREAD_SANITIZER)
  __tsan_switch_to_fiber(host_watched_, __tsan_switch_to_fiber_no_sync);
#endif
  switch_context(own_, host_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack_, &host_stack_, &host_stack_bytes_);
#endif
}

}  // namespace paceline::fake_cuda

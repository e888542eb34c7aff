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

namespace paceline::fake_cuda {

namespace {

constexpr std::size_t kStackBytes = 256 * 1024;

std::size_t page() {
  return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace

Fiber::Fiber() {
  // The page below the stack stays closed: what runs over its end stops there.
  void* const memory = ::mmap(nullptr, kStackBytes + page(), PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED || ::mprotect(memory, page(), PROT_NONE) != 0) std::abort();
  stack_ = static_cast<std::byte*>(memory) + page();
  if (::getcontext(&own_) != 0) std::abort();
  own_.uc_stack.ss_sp = stack_;
  own_.uc_stack.ss_size = kStackBytes;
  own_.uc_link = nullptr;
  const auto address = reinterpret_cast<std::uintptr_t>(this);
  ::makecontext(&own_, reinterpret_cast<void (*)()>(&Fiber::enter), 2, static_cast<unsigned>(address >> 32),
                static_cast<unsigned>(address));
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

void Fiber::enter(unsigned high, unsigned low) {
  auto* const fiber = reinterpret_cast<Fiber*>(static_cast<std::uintptr_t>(high) << 32 | low);
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
  ::swapcontext(&host_, &own_);
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
  ::swapcontext(&own_, &host_);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(fake_stack_, &host_stack_, &host_stack_bytes_);
#endif
}

}  // namespace paceline::fake_cuda

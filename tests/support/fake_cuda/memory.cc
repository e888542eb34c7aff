#include "tests/support/fake_cuda/memory.h"

#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/support/fake_cuda/block.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace paceline::fake_cuda {

namespace {

constexpr std::size_t kAlignment = 16;
constexpr int kFill = 0xff;
constexpr unsigned char kTail = 0xa5;

std::size_t page() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}
std::size_t up(std::size_t bytes, std::size_t to) {
  return (bytes + to - 1) / to * to;
}

// What a signal handler may read: the ranges that are closed around allocations. Later ones take the place of
// the first.
struct Guard {
  std::atomic<std::uintptr_t> pages{0}, end{0}, first{0}, bytes{0};
};
std::array<Guard, 4096> guards;
std::atomic<std::size_t> next_guard{0};

void fault(int, siginfo_t* info, void*) {
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (const Guard& guard : guards) {
    if (at < guard.pages || at >= guard.end) continue;
    const char* const kernel = running_kernel();
    std::array<char, 256> text{};
    const int n = std::snprintf(text.data(), text.size(),
                                "fake_cuda: %s touched byte %ld of an allocation of %zu bytes\n",
                                kernel == nullptr ? "the host" : kernel, static_cast<long>(at - guard.first),
                                static_cast<std::size_t>(guard.bytes));
    static_cast<void>(::write(STDERR_FILENO, text.data(), static_cast<std::size_t>(n)));
    break;
  }
  // Returning does it again, now without us.
  ::signal(SIGSEGV, SIG_DFL);
}

}  // namespace

void explain_faults() {
  struct sigaction action = {};
  action.sa_sigaction = &fault;
  action.sa_flags = SA_SIGINFO;
  ::sigaction(SIGSEGV, &action, nullptr);
}

void* Memory::allocate(std::size_t bytes) {
  const std::size_t body = up(bytes, page()), whole = body + 2 * page();
  void* const pages = ::mmap(nullptr, whole, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (pages == MAP_FAILED) return nullptr;
  auto* const base = static_cast<std::byte*>(pages);
  if (::mprotect(base + page(), body, PROT_READ | PROT_WRITE) != 0) std::abort();
  std::byte* const first = base + page() + body - up(bytes, kAlignment);
  std::memset(first, kFill, bytes);
  std::memset(first + bytes, kTail, up(bytes, kAlignment) - bytes);
#if defined(__SANITIZE_ADDRESS__)
  ASAN_POISON_MEMORY_REGION(base + page(), static_cast<std::size_t>(first - base) - page());
  ASAN_POISON_MEMORY_REGION(first + bytes, up(bytes, kAlignment) - bytes);
#endif
  const auto key = reinterpret_cast<std::uintptr_t>(first);
  all_[key] = {base, whole, bytes};
  used_ += bytes;
  Guard& guard = guards[next_guard++ % guards.size()];
  guard.end = 0;
  guard.first = key;
  guard.bytes = bytes;
  guard.pages = reinterpret_cast<std::uintptr_t>(base);
  guard.end = guard.pages + whole;
  return first;
}

bool Memory::free(void* address, std::string& problem) {
  const auto found = all_.find(reinterpret_cast<std::uintptr_t>(address));
  if (found == all_.end()) return false;
  const Allocation& allocation = found->second;
  auto* const first = static_cast<std::byte*>(address);
#if defined(__SANITIZE_ADDRESS__)
  ASAN_UNPOISON_MEMORY_REGION(allocation.pages, allocation.page_bytes);
#endif
  for (std::size_t i = allocation.bytes; i < up(allocation.bytes, kAlignment); ++i) {
    if (first[i] != std::byte{kTail})
      problem = "byte " + std::to_string(i) + " of an allocation of " + std::to_string(allocation.bytes) +
                " bytes was written";
  }
  used_ -= allocation.bytes;
  for (Guard& guard : guards) {
    if (guard.first == found->first) guard.end = 0;
  }
  ::munmap(allocation.pages, allocation.page_bytes);
  all_.erase(found);
  return true;
}

bool Memory::contains(const void* address, std::size_t bytes) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  auto after = all_.upper_bound(at);
  if (after == all_.begin()) return false;
  const auto& [first, allocation] = *std::prev(after);
  return at - first <= allocation.bytes && bytes <= allocation.bytes - (at - first);
}

}  // namespace paceline::fake_cuda

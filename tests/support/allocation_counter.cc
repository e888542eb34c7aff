#include "tests/support/allocation_counter.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <new>

namespace {

std::atomic<std::int64_t> all{0};
thread_local std::int64_t own = 0, own_bytes = 0;
constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
thread_local std::size_t limit = kNoLimit;

void* allocate_or_null(std::size_t bytes, std::size_t alignment) {
  all.fetch_add(1, std::memory_order_relaxed);
  ++own;
  if (bytes > limit) return nullptr;
  own_bytes += static_cast<std::int64_t>(bytes);
  if (bytes == 0) bytes = 1;
  return alignment <= alignof(std::max_align_t)
             ? std::malloc(bytes)
             : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  void* memory = allocate_or_null(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return allocate(bytes, 1);
}
void* operator new[](std::size_t bytes) {
  return allocate(bytes, 1);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return allocate(bytes, static_cast<std::size_t>(alignment));
}
// The library's own would take from another allocator than delete gives back to.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes, 1);
}
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes, 1);
}
void* operator new(std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return allocate_or_null(bytes, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete[](void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  std::free(memory);
}

namespace paceline {

std::int64_t allocations_of_all_threads() {
  return all.load(std::memory_order_relaxed);
}
std::int64_t allocations_of_this_thread() {
  return own;
}
std::int64_t bytes_of_this_thread() {
  return own_bytes;
}

AllocationLimit::AllocationLimit(std::size_t bytes) {
  limit = bytes;
}
AllocationLimit::~AllocationLimit() {
  limit = kNoLimit;
}

}  // namespace paceline

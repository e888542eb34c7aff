// Counts what kernels load and store. Their sources are compiled for ThreadSanitizer, so that the compiler
// calls a function before each access to memory that others may see; the functions are these here, and no
// sanitizer is linked. What is no memory of the device (parameters, shared memory, what did not fit into
// registers) does not count.

#include "tests/support/fake_cuda/state.h"

namespace paceline::fake_cuda {
namespace {

// Kernels run under the library's lock.
void load(const void* address, std::size_t bytes) {
  State& s = state();
  if (s.device.contains(address, bytes)) s.traffic.loaded += bytes;
}
void store(const void* address, std::size_t bytes) {
  State& s = state();
  if (s.device.contains(address, bytes)) s.traffic.stored += bytes;
}

}  // namespace
}  // namespace paceline::fake_cuda

// The names are the compiler's.
// NOLINTBEGIN(bugprone-reserved-identifier)
#define COUNT(bytes)                                  \
  void __tsan_read##bytes(void* address) {            \
    paceline::fake_cuda::load(address, bytes);        \
  }                                                   \
  void __tsan_write##bytes(void* address) {           \
    paceline::fake_cuda::store(address, bytes);       \
  }                                                   \
  void __tsan_unaligned_read##bytes(void* address) {  \
    paceline::fake_cuda::load(address, bytes);        \
  }                                                   \
  void __tsan_unaligned_write##bytes(void* address) { \
    paceline::fake_cuda::store(address, bytes);       \
  }

extern "C" {
void __tsan_init() {}
void __tsan_read_range(void* address, unsigned long bytes) {
  paceline::fake_cuda::load(address, bytes);
}
void __tsan_write_range(void* address, unsigned long bytes) {
  paceline::fake_cuda::store(address, bytes);
}
COUNT(1)
COUNT(2)
COUNT(4)
COUNT(8)
COUNT(16)
}
// NOLINTEND(bugprone-reserved-identifier)

#pragma once

// The memory of emulated GPUs, and pinned memory of the host. An allocation ends where a closed page begins,
// and one lies before it: a kernel that goes beyond it stops the test there and then, with a line that names
// kernel, address and allocation. The bytes between its end and that page (up to 15, so that it begins at a
// multiple of 16) are checked when it is freed, and closed by AddressSanitizer.
// Not thread-safe: the library's lock is held.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>

namespace paceline::fake_cuda {

class Memory {
 public:
  // Null where there is no more memory. Filled with 0xff: NaN as floats.
  void* allocate(std::size_t bytes);
  // Whether it was one of ours. `problem`: what was found behind its end, else empty.
  bool free(void* address, std::string& problem);
  // Whether all of [address, address + bytes) lies in one allocation.
  bool contains(const void* address, std::size_t bytes) const;
  std::size_t used() const { return used_; }
  std::size_t count() const { return all_.size(); }

 private:
  struct Allocation {
    std::byte* pages = nullptr;
    std::size_t page_bytes = 0;
    std::size_t bytes = 0;
  };
  std::map<std::uintptr_t, Allocation> all_;  // by its first address
  std::size_t used_ = 0;
};

// From now on a fault in a closed page of any Memory says what it was before the program ends.
void explain_faults();

}  // namespace paceline::fake_cuda

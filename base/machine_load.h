#pragma once

// How busy this machine is, with whatever, and the memory that is left.

#include <cstdint>
#include <optional>
#include <string_view>

namespace paceline {

// Linux counts threads that wait for a disk, too.
struct MachineLoad {
  double threads = 0;  // of all programs that ran or waited, as a mean over the last minute
  int processors = 1;  // of the machine
  int usable = 1;      // by this process: usable_processors()
};
// Nothing where the system does not tell.
std::optional<MachineLoad> machine_load();

// Bytes that programs can still take before one is ended for want of memory: as the kernel reckons, swap
// included. Nothing where the system does not tell. `text`: of /proc/meminfo.
std::optional<std::uint64_t> free_memory();
std::optional<std::uint64_t> free_memory(std::string_view text);

// Bytes that this process can still map before it meets its limit of address space (ulimit -v). Nothing where
// there is no limit, or the system does not tell. `statm`: of /proc/self/statm, in pages.
std::optional<std::uint64_t> free_address_space();
std::optional<std::uint64_t> free_address_space(std::uint64_t limit, std::string_view statm,
                                                std::uint64_t page_bytes);

}  // namespace paceline

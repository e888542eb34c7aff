#pragma once

// The process that owns a run, and the one that deletes it: what /proc tells of them.

#include <cstdint>

namespace paceline::cli {

// A process of this id is there. One that has ended and is not waited for yet is none.
bool is_alive(std::int64_t pid);

// The process stands still: by SIGSTOP, ctrl-Z or a debugger. It acts on no other signal until it goes on.
bool stands_still(std::int64_t pid);

}  // namespace paceline::cli

#pragma once

// Randomness from the system, fit for keys, tokens and unique names; for what must be repeatable, see rng.h.
// Thread-safe.

#include <cstddef>
#include <span>
#include <string>

namespace paceline {

// Fills any number of bytes. Never comes short: a system without randomness is no system to run on.
void fill_random(std::span<std::byte> bytes);
std::string random_bytes(std::size_t count);

}  // namespace paceline

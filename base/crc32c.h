#pragma once

// CRC-32C (Castagnoli, reflected polynomial 0x82F63B78), as in iSCSI and LevelDB. By the processor's
// instruction where it has one, else by table. Pure and thread-safe.

#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline {

// The checksum of `data`, continuing from `previous` (0 to begin): crc32c(b, crc32c(a)) is the checksum of a
// followed by b.
std::uint32_t crc32c(std::span<const std::byte> data, std::uint32_t previous = 0);

// The table version, for the test that both agree.
std::uint32_t crc32c_portable(std::span<const std::byte> data, std::uint32_t previous = 0);

}  // namespace paceline

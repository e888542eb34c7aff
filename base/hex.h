#pragma once

// Bytes as lowercase hexadecimal text: {0x0a, 0xff} -> "0aff". Pure.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace paceline {

std::string hex(std::span<const std::byte> bytes);
std::string hex(std::string_view bytes);

}  // namespace paceline

#pragma once

// FNV-1a, 64 bits (Fowler, Noll, Vo): of little text, the same on every machine. Not for secrets, nor
// against who picks the text. Pure.

#include <cstdint>
#include <string_view>

namespace paceline {

class Fnv1a {
 public:
  // Another seed, another hash; 0: the published one.
  constexpr explicit Fnv1a(std::uint64_t seed = 0) : value_(0xcbf29ce484222325U ^ seed) {}

  constexpr void add(unsigned char byte) { value_ = (value_ ^ byte) * 0x100000001b3U; }
  constexpr void add(std::string_view text) {
    for (const char c : text) add(static_cast<unsigned char>(c));
  }
  constexpr std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_;
};

constexpr std::uint64_t fnv1a(std::string_view text, std::uint64_t seed = 0) {
  Fnv1a hash(seed);
  hash.add(text);
  return hash.value();
}

}  // namespace paceline

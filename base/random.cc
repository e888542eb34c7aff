#include "base/random.h"

#include <unistd.h>

#include <algorithm>

#include "base/check.h"

namespace paceline {

void fill_random(std::span<std::byte> bytes) {
  constexpr std::size_t kMost = 256;  // what one call gives
  while (!bytes.empty()) {
    const std::span<std::byte> part = bytes.first(std::min(bytes.size(), kMost));
    PL_CHECK(::getentropy(part.data(), part.size()) == 0, "the system gives random bytes");
    bytes = bytes.subspan(part.size());
  }
}

std::string random_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  fill_random(std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

}  // namespace paceline

#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

#include "base/rng.h"

namespace paceline {
namespace {

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

// The check value of the catalogue of parametrised CRC algorithms, and the all-zeros vector of RFC 3720,
// appendix B.4.
TEST(Crc32cTest, KnownValues) {
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32c(std::vector<std::byte>(32)), 0x8a9136aau);
  EXPECT_EQ(crc32c({}), 0u);
}

TEST(Crc32cTest, InstructionAndTableAgreeAndContinue) {
  const std::uint64_t seed = 42;
  SCOPED_TRACE(seed);
  Rng rng(seed, 0);
  for (std::size_t size = 0; size < 200; ++size) {
    std::vector<std::byte> data(size);
    for (auto& b : data) b = static_cast<std::byte>(rng.next_u64());
    const std::uint32_t whole = crc32c_portable(data);
    EXPECT_EQ(crc32c(data), whole);
    const std::size_t cut = rng.below(size + 1);
    EXPECT_EQ(crc32c(std::span(data).subspan(cut), crc32c(std::span(data).first(cut))), whole);
  }
}

}  // namespace
}  // namespace paceline

#include "runtime/pserver/frame.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <string>

#include "base/crc32c.h"
#include "base/rng.h"

namespace paceline::pserver {
namespace {

using ::testing::HasSubstr;
using Encoded = std::array<std::byte, kFrameBytes>;

Encoded encoded(const FrameHeader& header) {
  Encoded bytes;
  encode(header, bytes);
  return bytes;
}

// With a checksum that fits.
Encoded sealed(Encoded bytes) {
  const std::uint32_t sum = crc32c(std::span<const std::byte>(bytes).first(kFrameBytes - 4));
  for (std::size_t k = 0; k < 4; ++k) bytes[kFrameBytes - 4 + k] = static_cast<std::byte>(sum >> (8 * k));
  return bytes;
}

TEST(PsFrame, IsAsTheProtocolSays) {
  const Encoded bytes = encoded({.kind = FrameKind::kGradient,
                                 .generation = Generation{7},
                                 .rank = 1,
                                 .number = 9,
                                 .begin = 0x100,
                                 .length = 4096});
  const std::array<int, 20> start = {0x50, 0x4c, 0x50, 0x53, 3, 0, 4, 0, 7, 0, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0};
  for (std::size_t k = 0; k < start.size(); ++k) EXPECT_EQ(std::to_integer<int>(bytes[k]), start[k]) << k;
  EXPECT_EQ(std::to_integer<int>(bytes[25]), 1);     // begin
  EXPECT_EQ(std::to_integer<int>(bytes[33]), 0x10);  // length
  EXPECT_EQ(std::to_integer<int>(bytes[40]), 1);     // rank
}

TEST(PsFrame, ComesBackAsItWas) {
  Rng rng(1, 0);
  for (int kind = 1; kind <= static_cast<int>(kLastFrameKind); ++kind) {
    const FrameHeader header{.kind = static_cast<FrameKind>(kind),
                             .generation = Generation{rng.next_u64()},
                             .rank = static_cast<std::int32_t>(rng.below(100)) - 1,
                             .number = static_cast<std::int64_t>(rng.next_u64()),
                             .begin = rng.next_u64(),
                             .length = 8 * rng.below(kMaxMessage / 8)};
    const auto decoded = decode_frame(encoded(header));
    ASSERT_TRUE(decoded.ok()) << decoded.status();
    EXPECT_EQ(*decoded, header);
    EXPECT_STRNE(kind_name(header.kind), "?");
  }
}

TEST(PsFrame, RefusesGarbage) {
  Rng rng(2, 0);
  for (int k = 0; k < 2000; ++k) {
    Encoded bytes;
    for (std::byte& b : bytes) b = static_cast<std::byte>(rng.below(256));
    EXPECT_FALSE(decode_frame(bytes).ok());
    EXPECT_FALSE(decode_frame(sealed(bytes)).ok());
  }
  const Encoded good = encoded({.kind = FrameKind::kCommit, .generation = Generation{1}});
  ASSERT_TRUE(decode_frame(good).ok());
  for (std::size_t bit = 0; bit < 8 * kFrameBytes; ++bit) {
    Encoded bytes = good;
    bytes[bit / 8] ^= static_cast<std::byte>(1 << (bit % 8));
    EXPECT_FALSE(decode_frame(bytes).ok()) << "bit " << bit;
  }
}

// Kinds and messages of versions 1 and 2 were others: an older member's frame would be taken for what it is
// not.
TEST(PsFrame, AnotherVersionIsRefusedByName) {
  for (const int version : {0, 2, 4}) {
    Encoded bytes = encoded({.kind = FrameKind::kCommit, .generation = Generation{1}});
    bytes[4] = static_cast<std::byte>(version);
    const absl::Status refused = decode_frame(sealed(bytes)).status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition) << refused;
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("version " + std::to_string(version) + " of the parameter servers' protocol"));
    EXPECT_THAT(std::string(refused.message()), HasSubstr("this member speaks version 3"));
    EXPECT_THAT(std::string(refused.message()),
                HasSubstr("all members of a job must run the same release of paceline"));
  }
}

TEST(PsFrame, BoundsEveryLength) {
  const auto with = [](FrameKind kind, std::uint64_t length) {
    return decode_frame(encoded({.kind = kind, .generation = Generation{1}, .length = length})).ok();
  };
  EXPECT_TRUE(with(FrameKind::kGradient, kMaxData));
  EXPECT_FALSE(with(FrameKind::kGradient, kMaxData + 4));
  EXPECT_FALSE(with(FrameKind::kWeights, 6)) << "half a float";
  EXPECT_TRUE(with(FrameKind::kRowIds, 24));
  EXPECT_FALSE(with(FrameKind::kRowIds, 12)) << "half an id";
  EXPECT_TRUE(with(FrameKind::kRowPlaces, 12));
  EXPECT_FALSE(with(FrameKind::kPullRows, kMaxMessage + 1)) << "a message";
  EXPECT_TRUE(with(FrameKind::kLog, kMaxMessage));
  EXPECT_FALSE(with(FrameKind::kLog, kMaxMessage + 1));
  EXPECT_FALSE(with(FrameKind::kAbort, ~std::uint64_t{0}));
  for (const int kind : {0, static_cast<int>(kLastFrameKind) + 1, 0xffff}) {
    EXPECT_FALSE(with(static_cast<FrameKind>(kind), 0)) << kind;
  }
}

}  // namespace
}  // namespace paceline::pserver

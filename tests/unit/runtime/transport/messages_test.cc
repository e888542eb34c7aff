// The bytes of docs/protocol.md, "Data links".

#include <gtest/gtest.h>

#include <string>

#include "base/hex.h"
#include "base/rng.h"
#include "runtime/transport/frame.h"
#include "runtime/transport/handshake.h"
#include "runtime/transport/peer_watch.h"

namespace paceline::transport {
namespace {

Message example_hello() {
  Message hello;
  hello.type = MessageType::kHello;
  hello.channel = 1;
  hello.channels = 3;
  hello.generation = Generation{7};
  hello.rank = 2;
  hello.world = 4;
  hello.target = 1;
  for (std::size_t i = 0; i < hello.nonce.size(); ++i) hello.nonce[i] = static_cast<std::uint8_t>(i);
  return hello;
}

TEST(Golden, Hello) {
  EXPECT_EQ(hex(encode(example_hello())),
            "504c4e4b"
            "0100"
            "01"
            "01"
            "0700000000000000"
            "02000000"
            "04000000"
            "01000000"
            "03000000"
            "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
            "0000000000000000000000000000000000000000000000000000000000000000"
            "00000000"
            "060b6788");
}

TEST(Golden, Proof) {
  Key key{};
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::uint8_t>(0xa0 + i);
  Nonce nonce{};
  nonce.fill(0x55);
  const Digest server = prove(key, Side::kServer, example_hello(), nonce);
  const Digest client = prove(key, Side::kClient, example_hello(), nonce);
  EXPECT_EQ(hex(std::as_bytes(std::span(server))),
            "b9b61fafe9fbeaa80edbd786f6c05016c1424f04fa9624150a729179c418112c");
  EXPECT_EQ(hex(std::as_bytes(std::span(client))),
            "5eb95758a6ad98ea971cbabf6c0c43f77ef52a20b47c11b84d1038920c8f246c");
}

TEST(Golden, Renewal) {
  Message renewal = example_hello();
  renewal.type = MessageType::kRenewal;
  renewal.channel = 0;
  renewal.nonce = {};
  Key key{};
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::uint8_t>(0xa0 + i);
  renewal.proof = prove_renewal(key, renewal);
  EXPECT_EQ(renewal.proof, prove_renewal(key, renewal)) << "of the message without it";
  EXPECT_EQ(hex(encode(renewal)),
            "504c4e4b"
            "0100"
            "07"
            "00"
            "0700000000000000"
            "02000000"
            "04000000"
            "01000000"
            "03000000"
            "0000000000000000000000000000000000000000000000000000000000000000"
            "a989ada401d37c56cc1395e10056b45f6450504641202d93a7f715aca6d7114a"
            "00000000"
            "d27f74fc");
  EXPECT_EQ(*decode(encode(renewal)), renewal);
}

TEST(Golden, Frame) {
  std::array<std::byte, kFrameHeaderBytes> bytes;
  encode(FrameHeader{Generation{7}, 9, 0x01020304, 5, 4096}, bytes);
  EXPECT_EQ(hex(bytes),
            "504c4652"
            "0100"
            "0000"
            "0700000000000000"
            "0900000000000000"
            "04030201"
            "05000000"
            "00100000"
            "a4f1a21d");
}

TEST(Golden, Notice) {
  const auto bytes =
      encode(Notice{Notice::Type::kAbort, {2, absl::StatusCode::kUnavailable, "rank 2 is gone"}});
  EXPECT_EQ(hex(std::span(bytes).first(20)),
            "504c4e4b"
            "0100"
            "06"
            "00"
            "02000000"
            "0e000000"
            "0e000000");
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(bytes.data()) + 20, 14), "rank 2 is gone");
  EXPECT_EQ(hex(std::span(bytes).last(4)), "84ed93b9");
}

// Everything that can be written can be read, and a flip of any one bit is seen.
TEST(Messages, RoundTripAndRefuseEveryFlippedBit) {
  const auto hello = encode(example_hello());
  EXPECT_EQ(*decode(hello), example_hello());
  for (std::size_t bit = 0; bit < hello.size() * 8; ++bit) {
    auto flipped = hello;
    flipped[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    ASSERT_FALSE(decode(flipped).ok()) << "bit " << bit;
  }
  std::array<std::byte, kFrameHeaderBytes> frame;
  const FrameHeader header{Generation{7}, 9, 1, 5, kMaxFrameBytes};
  encode(header, frame);
  EXPECT_EQ(*decode_frame(frame), header);
  for (std::size_t bit = 0; bit < frame.size() * 8; ++bit) {
    auto flipped = frame;
    flipped[bit / 8] ^= static_cast<std::byte>(1u << (bit % 8));
    const auto decoded = decode_frame(flipped);
    ASSERT_FALSE(decoded.ok()) << "bit " << bit;
  }
}

TEST(Messages, LengthsAreBounded) {
  std::array<std::byte, kFrameHeaderBytes> frame;
  encode(FrameHeader{Generation{1}, 1, 1, 1, kMaxFrameBytes + 1}, frame);
  EXPECT_FALSE(decode_frame(frame).ok());
}

TEST(Messages, GarbageIsRefused) {
  constexpr std::uint64_t kSeed = 99;
  Rng rng(kSeed, 0);
  for (int i = 0; i < 2000; ++i) {
    std::array<std::byte, kMessageBytes> message;
    for (std::byte& b : message) b = static_cast<std::byte>(rng.below(256));
    std::array<std::byte, kNoticeBytes> notice;
    for (std::byte& b : notice) b = static_cast<std::byte>(rng.below(256));
    ASSERT_FALSE(decode(message).ok()) << "seed " << kSeed << " round " << i;
    ASSERT_FALSE(decode_notice(notice).ok()) << "seed " << kSeed << " round " << i;
    ASSERT_FALSE(decode_frame(std::span(message).first<kFrameHeaderBytes>()).ok());
  }
}

TEST(Proof, DependsOnEverything) {
  Key key{}, other_key{};
  other_key[31] = 1;
  Nonce nonce{}, other_nonce{};
  other_nonce[0] = 1;
  Message hello = example_hello(), other = hello;
  other.generation = Generation{8};
  const Digest proof = prove(key, Side::kClient, hello, nonce);
  EXPECT_TRUE(equal(proof, prove(key, Side::kClient, hello, nonce)));
  EXPECT_FALSE(equal(proof, prove(other_key, Side::kClient, hello, nonce)));
  EXPECT_FALSE(equal(proof, prove(key, Side::kServer, hello, nonce)));
  EXPECT_FALSE(equal(proof, prove(key, Side::kClient, other, nonce)));
  EXPECT_FALSE(equal(proof, prove(key, Side::kClient, hello, other_nonce)));
}

}  // namespace
}  // namespace paceline::transport

#pragma once

// How the two ends of a data link prove that they belong to the same view (docs/protocol.md, "Data links").
// Pure.
//
//   client -> server   hello      generation, rank, world, target, channel, client's nonce
//   server -> client   challenge  server's nonce, HMAC-SHA256(key, "paceline server\0" + hello + server's
//   nonce) client -> server   proof      HMAC-SHA256(key, "paceline client\0" + hello + server's nonce) (+
//   descriptors) server -> client   verdict    accepted or why not (+ descriptors)
//
// Connections of an earlier view between the same two processes carry the next one by two messages on
// connection 0, HMAC-SHA256(key, "paceline renews\0" + renewal without its proof + 32 zeros) by that view's
// key:
//
//   higher rank -> lower   renewal (+ descriptors)
//   lower -> higher        renewal, its own (+ descriptors)
//
// Every message has the same kMessageBytes bytes and a checksum; anything else on the wire ends the
// connection.

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "base/ids.h"

namespace paceline::transport {

using Key = std::array<std::uint8_t, 32>;
using Nonce = std::array<std::uint8_t, 32>;
using Digest = std::array<std::uint8_t, 32>;

inline constexpr std::uint32_t kLinkMagic = 0x4b4e4c50;  // "PLNK"
inline constexpr std::uint16_t kLinkVersion = 1;
inline constexpr std::size_t kMessageBytes = 104;
inline constexpr int kMaxChannels = 17;  // of a pair

// 5 and 6 are notices (peer_watch.h).
enum class MessageType : std::uint8_t { kHello = 1, kChallenge = 2, kProof = 3, kVerdict = 4, kRenewal = 7 };

enum class Refusal : std::uint32_t {
  kAccepted = 0,
  kStaleGeneration = 1,
  kWrongWorld = 2,
  kWrongRank = 3,  // not the rank that was expected, or not the target
  kWrongChannel = 4,
  kWrongKey = 5,
};
const char* refusal_text(Refusal refusal);

struct Message {
  MessageType type = MessageType::kHello;
  std::uint8_t channel = 0;   // 0: control; 1 to 16: data
  std::uint8_t channels = 1;  // of this pair
  Generation generation;
  std::uint32_t rank = 0;  // the client's; renewal: the sender's
  std::uint32_t world = 0;
  std::uint32_t target = 0;              // the server's rank; renewal: the other end's
  Nonce nonce{};                         // hello: the client's; challenge: the server's
  Digest proof{};                        // challenge, proof and renewal
  Refusal refusal = Refusal::kAccepted;  // verdict
  bool operator==(const Message&) const = default;
};

std::array<std::byte, kMessageBytes> encode(const Message& message);
// INVALID_ARGUMENT with the field that is wrong.
absl::StatusOr<Message> decode(std::span<const std::byte, kMessageBytes> bytes);

enum class Side : std::uint8_t { kServer, kClient };
Digest prove(const Key& key, Side side, const Message& hello, const Nonce& server_nonce);
// The key of this connection's TLS, which begins when both ends have proved that they know `key`.
Key tls_key(const Key& key, const Message& hello, const Nonce& server_nonce);
// The renewal's own `proof` does not count.
Digest prove_renewal(const Key& key, Message renewal);
// Without telling by its time where they differ.
bool equal(const Digest& a, const Digest& b);

}  // namespace paceline::transport

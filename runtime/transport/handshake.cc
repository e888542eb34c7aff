#include "runtime/transport/handshake.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <cstring>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "base/status.h"

namespace paceline::transport {

const char* refusal_text(Refusal refusal) {
  switch (refusal) {
    case Refusal::kAccepted:
      return "accepted";
    case Refusal::kStaleGeneration:
      return "it is in a later generation";
    case Refusal::kWrongWorld:
      return "it has another world size";
    case Refusal::kWrongRank:
      return "it expects another rank";
    case Refusal::kWrongChannel:
      return "it has another number of sockets per peer";
    case Refusal::kWrongKey:
      return "the keys differ";
  }
  return "unknown reason";
}

std::array<std::byte, kMessageBytes> encode(const Message& message) {
  ByteWriter writer;
  writer.u32(kLinkMagic);
  writer.u16(kLinkVersion);
  writer.u8(static_cast<std::uint8_t>(message.type));
  writer.u8(message.channel);
  writer.u64(message.generation.value);
  writer.u32(message.rank);
  writer.u32(message.world);
  writer.u32(message.target);
  writer.u32(message.channels);
  writer.bytes(std::as_bytes(std::span(message.nonce)));
  writer.bytes(std::as_bytes(std::span(message.proof)));
  writer.u32(static_cast<std::uint32_t>(message.refusal));
  writer.u32(crc32c(writer.data()));
  std::array<std::byte, kMessageBytes> bytes;
  PL_CHECK(writer.data().size() == bytes.size(), "a handshake message has one size");
  std::memcpy(bytes.data(), writer.data().data(), bytes.size());
  return bytes;
}

absl::StatusOr<Message> decode(std::span<const std::byte, kMessageBytes> bytes) {
  ByteReader reader(bytes);
  if (reader.u32() != kLinkMagic) return absl::InvalidArgumentError("not a Paceline data link: wrong magic");
  const std::uint16_t version = reader.u16();
  if (version != kLinkVersion) return absl::InvalidArgumentError(str_cat("link protocol version ", version));
  Message message;
  const std::uint8_t type = reader.u8();
  const bool known = (type >= 1 && type <= 4) || type == static_cast<std::uint8_t>(MessageType::kRenewal);
  if (!known) return absl::InvalidArgumentError(str_cat("handshake message of type ", type));
  message.type = static_cast<MessageType>(type);
  message.channel = reader.u8();
  message.generation.value = reader.u64();
  message.rank = reader.u32();
  message.world = reader.u32();
  message.target = reader.u32();
  const std::uint32_t channels = reader.u32();
  if (channels < 1 || channels > kMaxChannels || message.channel >= channels) {
    return absl::InvalidArgumentError(str_cat("channel ", message.channel, " of ", channels));
  }
  message.channels = static_cast<std::uint8_t>(channels);
  std::memcpy(message.nonce.data(), reader.bytes(message.nonce.size()).data(), message.nonce.size());
  std::memcpy(message.proof.data(), reader.bytes(message.proof.size()).data(), message.proof.size());
  message.refusal = static_cast<Refusal>(reader.u32());
  if (reader.u32() != crc32c(bytes.first<kMessageBytes - 4>())) {
    return absl::InvalidArgumentError("a handshake message with a wrong checksum");
  }
  return message;
}

namespace {

using Label = char[16];

Digest hmac_of(const Key& key, const Label& label, const Message& message, const Nonce& nonce) {
  const auto bytes = encode(message);
  std::array<std::uint8_t, 16 + kMessageBytes + 32> text;
  std::memcpy(text.data(), label, sizeof(label));
  std::memcpy(text.data() + 16, bytes.data(), bytes.size());
  std::memcpy(text.data() + 16 + kMessageBytes, nonce.data(), nonce.size());
  Digest digest;
  unsigned int length = 0;
  const unsigned char* done = ::HMAC(::EVP_sha256(), key.data(), static_cast<int>(key.size()), text.data(),
                                     text.size(), digest.data(), &length);
  PL_CHECK(done != nullptr && length == digest.size(), "HMAC-SHA256 gives 32 bytes");
  return digest;
}

}  // namespace

Digest prove(const Key& key, Side side, const Message& hello, const Nonce& server_nonce) {
  static constexpr Label kServer = "paceline server", kClient = "paceline client";
  return hmac_of(key, side == Side::kServer ? kServer : kClient, hello, server_nonce);
}

Key tls_key(const Key& key, const Message& hello, const Nonce& server_nonce) {
  static constexpr Label kTls = "paceline tls 13";
  return hmac_of(key, kTls, hello, server_nonce);
}

Digest prove_renewal(const Key& key, Message renewal) {
  static constexpr Label kRenews = "paceline renews";
  renewal.proof = {};
  return hmac_of(key, kRenews, renewal, {});
}

bool equal(const Digest& a, const Digest& b) {
  return ::CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace paceline::transport

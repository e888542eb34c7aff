#include "runtime/transport/rendezvous.h"

#include <sys/socket.h>
#include <unistd.h>

#include <optional>

#include "base/bytes.h"
#include "base/check.h"
#include "base/text.h"
#include "runtime/transport/handshake.h"
#include "runtime/transport/socket.h"
#include "tests/fuzz/mended.h"
#include "tests/fuzz/target.h"

namespace paceline::fuzz {

namespace {

using namespace transport;

constexpr Key kKey{1, 2, 3};
constexpr int kMostMessages = 16;
constexpr int kLastLooks = 8;  // of the meeting, after the last message

// The other end, which says what the input has, one message whenever the meeting looks at its clock: so all
// happens in one thread, and the same each time but for the meeting's nonce. It knows the key, and speaks on
// one connection at a time.
class Stranger final : public Clock {
 public:
  Stranger(Input input, std::string address) : reader_(input), address_(std::move(address)) {}

  TimePoint now() const override {
    if (!std::exchange(speaking_, true)) {
      now_ += std::chrono::microseconds(10);
      if (!speak() && ++looks_ > kLastLooks) now_ += std::chrono::hours(1);
      speaking_ = false;
    }
    return now_;
  }
  WallTime wall_now() const override { return {}; }

 private:
  // Bits of the first byte of each message: 1: on a new connection; 2: with a good magic and checksum; 4: as
  // the newest hello; 8: with the proof; 16: the descriptor of a socket goes with it.
  bool speak() const {
    if (reader_.remaining() == 0 || messages_ == kMostMessages) {
      fd_.reset();
      return false;
    }
    ++messages_;
    const std::uint8_t how = reader_.u8();
    if ((how & 1) != 0 || !fd_.valid()) {
      auto fd = connect_local(address_, *this, Deadline(TimePoint::max()));
      if (!fd.ok()) return true;
      fd_ = *std::move(fd);
    }
    if (std::array<std::byte, kMessageBytes> bytes;
        ::recv(fd_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) == static_cast<ssize_t>(bytes.size())) {
      if (const auto message = decode(bytes); message.ok() && message->type == MessageType::kChallenge)
        challenge_ = *message;
    }
    auto bytes = padded<kMessageBytes>(reader_.bytes(std::min(reader_.remaining(), kMessageBytes)));
    if ((how & 2) != 0) bytes = mended(bytes, encode(Message{}), 6);
    if (auto message = decode(bytes); message.ok()) {
      if ((how & 4) != 0) {
        const MessageType type = message->type;
        *message = hello_;
        message->type = type;
      }
      if ((how & 8) != 0) message->proof = prove(kKey, Side::kClient, hello_, challenge_.nonce);
      if (message->type == MessageType::kHello) hello_ = *message;
      bytes = encode(*message);
    }
    const int passed[] = {fd_.get()};
    (void)send_short(fd_.get(), bytes, std::span(passed).first((how & 16) != 0 ? 1 : 0));
    return true;
  }

  mutable ByteReader reader_;
  const std::string address_;
  mutable UniqueFd fd_;
  mutable Message hello_, challenge_;
  mutable TimePoint now_{};
  mutable int messages_ = 0, looks_ = 0;
  mutable bool speaking_ = false;
};

}  // namespace

// A meeting of rank 0 of three, which two others are to call, hears a stranger who holds the key.
int fuzz_rendezvous(Input input) {
  const std::string address = str_cat("paceline-fuzz-", ::getpid());
  auto listener = listen_local(address);
  PL_CHECK(listener.ok(), "a local socket");
  const Stranger stranger(input, address);
  auto rendezvous = Rendezvous::make({}, *std::move(listener), stranger);
  PL_CHECK(rendezvous.ok(), "an eventfd");
  const RendezvousPlan plan{.generation = Generation{5},
                            .rank = 0,
                            .world = 3,
                            .key = kKey,
                            .local = true,
                            .channels = 2,
                            .peers = {{1, "one", {}}, {2, "two", {}}}};
  const auto met = (*rendezvous)->meet(plan, Deadline::after(stranger.now(), std::chrono::milliseconds(2)));
  PL_CHECK((*rendezvous)->refused().size() <= Rendezvous::kMaxRefusals, "refusals are bounded");
  if (!met.ok()) return 0;
  PL_CHECK(met->size() == 2, "all have come");
  for (const MetPeer& peer : *met)
    PL_CHECK(peer.channels.size() == 2 && peer.channels[0].valid() && peer.channels[1].valid(),
             "each with all its connections");
  return 0;
}

}  // namespace paceline::fuzz

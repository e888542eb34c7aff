#include "runtime/transport/peer_watch.h"

#include <poll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/bytes.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "base/file.h"
#include "base/program.h"
#include "base/status.h"
#include "runtime/transport/handshake.h"

namespace paceline::transport {

std::array<std::byte, kNoticeBytes> encode(const Notice& notice) {
  const std::size_t length = std::min(notice.fault.text.size(), kNoticeText);
  ByteWriter writer;
  writer.u32(kLinkMagic);
  writer.u16(kLinkVersion);
  writer.u8(static_cast<std::uint8_t>(notice.type));
  writer.u8(0);
  writer.u32(static_cast<std::uint32_t>(notice.fault.blamed_rank));
  writer.u32(static_cast<std::uint32_t>(notice.fault.code));
  writer.u32(static_cast<std::uint32_t>(length));
  std::array<std::byte, kNoticeText> text{};
  std::memcpy(text.data(), notice.fault.text.data(), length);
  writer.bytes(text);
  writer.u32(crc32c(writer.data()));
  std::array<std::byte, kNoticeBytes> bytes;
  PL_CHECK(writer.data().size() == bytes.size(), "a notice has one size");
  std::memcpy(bytes.data(), writer.data().data(), bytes.size());
  return bytes;
}

absl::StatusOr<Notice> decode_notice(std::span<const std::byte, kNoticeBytes> bytes) {
  ByteReader reader(bytes);
  if (reader.u32() != kLinkMagic || reader.u16() != kLinkVersion)
    return absl::InvalidArgumentError("not a notice");
  Notice notice;
  const std::uint8_t type = reader.u8();
  if (type != 5 && type != 6) return absl::InvalidArgumentError(str_cat("notice of type ", type));
  notice.type = static_cast<Notice::Type>(type);
  reader.u8();
  notice.fault.blamed_rank = static_cast<int>(reader.u32());
  const std::uint32_t code = reader.u32(), length = reader.u32();
  if (code > 16 || length > kNoticeText) return absl::InvalidArgumentError("a notice out of bounds");
  notice.fault.code = static_cast<absl::StatusCode>(code);
  const auto text = reader.bytes(kNoticeText);
  notice.fault.text.assign(reinterpret_cast<const char*>(text.data()), length);
  if (reader.u32() != crc32c(bytes.first<kNoticeBytes - 4>())) {
    return absl::InvalidArgumentError("a notice with a wrong checksum");
  }
  return notice;
}

struct PeerWatch::Watched {
  Peer* peer;
  MessageReader reader{kNoticeBytes};
  bool open = true;
};

absl::StatusOr<std::unique_ptr<PeerWatch>> PeerWatch::make(std::vector<Peer> peers, OnEvent on_event) {
  UniqueFd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return errno_status(errno, "an eventfd for the watch over a view's peers");
  return std::unique_ptr<PeerWatch>(new PeerWatch(std::move(peers), std::move(on_event), std::move(wake)));
}

PeerWatch::PeerWatch(std::vector<Peer> peers, OnEvent on_event, UniqueFd wake)
    : peers_(std::move(peers)), on_event_(std::move(on_event)), wake_(std::move(wake)) {}

absl::Status PeerWatch::begin() {
  return without_exceptions([this] {
    thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
    return absl::OkStatus();
  });
}

PeerWatch::~PeerWatch() {
  end();
}

std::vector<PeerWatch::Peer> PeerWatch::take_peers() {
  end();
  std::erase_if(peers_, [](const Peer& peer) { return !peer.control.valid(); });
  return std::move(peers_);
}

void PeerWatch::end() {
  if (!thread_.joinable()) return;
  thread_.request_stop();
  const std::uint64_t one = 1;
  PL_CHECK(::write(wake_.get(), &one, sizeof(one)) == sizeof(one), "an eventfd takes a one");
  thread_.join();
}

void PeerWatch::send(const Notice& notice) {
  const auto bytes = encode(notice);
  // A peer that cannot be told will see the connection end.
  for (const Peer& peer : peers_) (void)peer.control.send_short(bytes);
}

void PeerWatch::watch(const std::stop_token& stop) {
  std::vector<Watched> watched;
  for (Peer& peer : peers_) watched.push_back({&peer});
  while (!stop.stop_requested()) {
    std::vector<pollfd> entries = {{wake_.get(), POLLIN, 0}};
    for (const Watched& w : watched)
      entries.push_back({w.open ? w.peer->control.get() : -1, POLLIN | POLLRDHUP, 0});
    ::poll(entries.data(), entries.size(), -1);
    for (std::size_t i = 0; i < watched.size() && !stop.stop_requested(); ++i) {
      if (entries[i + 1].revents != 0) watched[i].open = listen(watched[i]);
    }
  }
  for (const Watched& w : watched) {
    if (!w.open || w.reader.begun()) w.peer->control.reset();
  }
}

// False when nothing more will come.
bool PeerWatch::listen(Watched& watched) {
  PeerEvent event;
  event.rank = watched.peer->rank;
  const auto whole = watched.peer->control.read_some(watched.reader);
  if (whole.ok() && !*whole) return true;
  if (!whole.ok()) {
    event.fault.text = std::string(whole.status().message());
  } else if (auto notice = decode_notice(watched.reader.bytes().first<kNoticeBytes>()); !notice.ok()) {
    event.fault.text = std::string(notice.status().message());
  } else if (notice->type == Notice::Type::kGoodbye) {
    event.kind = PeerEvent::Kind::kLeft;
  } else {
    event.kind = PeerEvent::Kind::kAborted;
    event.fault = notice->fault;
  }
  on_event_(event);
  return false;
}

}  // namespace paceline::transport

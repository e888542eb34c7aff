#pragma once

// TLS 1.3 (RFC 8446) over a connected, non-blocking socket whose two ends have a key in common: an external
// PSK in mode psk_dhe_ke, TLS_AES_128_GCM_SHA256, X25519. There are no certificates, and keys of a
// connection that is over can't be had from the common one. Thread-safe: reads and writes go on side by
// side, one after the other inside.
//
// Records that were read are handed out whole before the socket is read again, so that poll(2) tells of all
// that is not here yet, and held() of the rest.

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/transport/handshake.h"

namespace paceline::transport {

// A key of AES-128-GCM serves for 2^24.5 records of 16 KiB (RFC 8446, 5.5): each is replaced long before.
inline constexpr std::uint64_t kRekeyBytes = std::uint64_t{1} << 36;

class TlsSession {
 public:
  // `fd` outlives it. RESOURCE_EXHAUSTED: there is no memory. FAILED_PRECONDITION: this machine's OpenSSL
  // refuses what it needs, as some do in FIPS mode.
  static absl::StatusOr<std::unique_ptr<TlsSession>> make(int fd, Side side, const Key& key,
                                                          std::uint64_t rekey_bytes = kRekeyBytes);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  // Goes on with the handshake. False: more has to come first. PERMISSION_DENIED: the other end has another
  // key, or speaks no TLS; UNAVAILABLE: it hung up.
  absl::StatusOr<bool> shake_hands();

  // These are Wire's. REQUIRES: the handshake is done. A write of which nothing was taken, or not all, is
  // made again with at least the same bytes.
  absl::StatusOr<std::size_t> write_some(std::span<const iovec> pieces);
  absl::StatusOr<std::size_t> read_some(std::span<const iovec> pieces);
  std::size_t held();

  struct Parts;  // OpenSSL's

 private:
  explicit TlsSession(std::unique_ptr<Parts> parts);
  absl::Status failure(const char* doing);
  absl::StatusOr<std::size_t> write_piece(const void* data, std::size_t size);

  std::mutex mutex_;  // guards what follows
  const std::unique_ptr<Parts> parts_;
};

}  // namespace paceline::transport

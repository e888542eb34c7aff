// OpenSSL over a BIO of ours, which neither waits nor raises SIGPIPE and keeps the socket's last error.
//
// A write makes records of up to 16 KiB, one for each call of SSL_write_ex(): a frame's header goes into one
// record with what follows it, and long pieces go without a copy. A record that the socket does not take
// stays in OpenSSL; whoever writes again gives the same bytes, and perhaps more behind them. No call is given
// more than a record: OpenSSL goes on with the next one before it tells of one that has waited.

#include "runtime/transport/tls_session.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/status.h"
#include "base/text.h"
#include "runtime/transport/socket.h"

namespace paceline::transport {

namespace {

constexpr std::size_t kRecordBytes = SSL3_RT_MAX_PLAIN_LENGTH;
constexpr char kIdentity[] = "paceline link";
constexpr unsigned char kCipher[] = {0x13, 0x01};  // TLS_AES_128_GCM_SHA256

struct Free {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(BIO_METHOD* method) const { BIO_meth_free(method); }
  void operator()(SSL_SESSION* session) const { SSL_SESSION_free(session); }
};

}  // namespace

struct TlsSession::Parts {
  int fd = -1;
  Key key{};
  std::uint64_t rekey_bytes = 0;
  std::uint64_t written = 0;  // by the present key
  int error = 0;              // the socket's last
  bool ended = false;         // by the other end
  std::array<std::byte, kRecordBytes> record;
  std::unique_ptr<BIO_METHOD, Free> method;
  std::unique_ptr<SSL, Free> ssl;  // owns its BIO

  static Parts& of(SSL* ssl) { return *static_cast<Parts*>(SSL_get_app_data(ssl)); }
};

namespace {

using Parts = TlsSession::Parts;

// ---- the socket

int keep_error(Parts& parts, BIO* bio, void (*set_retry)(BIO*)) {
  if (errno == EAGAIN || errno == EINTR)
    set_retry(bio);
  else
    parts.error = errno;
  return -1;
}

int send_bytes(BIO* bio, const char* bytes, int size) {
  Parts& parts = *static_cast<Parts*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const ssize_t sent = ::send(parts.fd, bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent >= 0) return static_cast<int>(sent);
  return keep_error(parts, bio, [](BIO* b) { BIO_set_retry_write(b); });
}

int receive_bytes(BIO* bio, char* to, int size) {
  Parts& parts = *static_cast<Parts*>(BIO_get_data(bio));
  BIO_clear_retry_flags(bio);
  const ssize_t got = ::recv(parts.fd, to, static_cast<std::size_t>(size), MSG_DONTWAIT);
  parts.ended = parts.ended || got == 0;
  if (got >= 0) return static_cast<int>(got);
  return keep_error(parts, bio, [](BIO* b) { BIO_set_retry_read(b); });
}

long control(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

// ---- the key

// REQUIRES: `ssl` has its parts.
SSL_SESSION* session_of(SSL* ssl) {
  const Key& key = Parts::of(ssl).key;
  std::unique_ptr<SSL_SESSION, Free> session(SSL_SESSION_new());
  const SSL_CIPHER* const cipher = SSL_CIPHER_find(ssl, kCipher);
  const bool made = session != nullptr && cipher != nullptr &&
                    SSL_SESSION_set1_master_key(session.get(), key.data(), key.size()) == 1 &&
                    SSL_SESSION_set_cipher(session.get(), cipher) == 1 &&
                    SSL_SESSION_set_protocol_version(session.get(), TLS1_3_VERSION) == 1;
  return made ? session.release() : nullptr;
}

int offer_key(SSL* ssl, const EVP_MD*, const unsigned char** identity, std::size_t* size,
              SSL_SESSION** session) {
  *identity = reinterpret_cast<const unsigned char*>(kIdentity);
  *size = sizeof(kIdentity) - 1;
  *session = session_of(ssl);
  return *session != nullptr ? 1 : 0;
}

// Another identity finds nothing, and there is no certificate to fall back on.
int find_key(SSL* ssl, const unsigned char* identity, std::size_t size, SSL_SESSION** session) {
  const std::string_view found(reinterpret_cast<const char*>(identity), size);
  *session = found == kIdentity ? session_of(ssl) : nullptr;
  return 1;
}

absl::Status refusal() {
  const unsigned long reason = ERR_peek_last_error();
  ERR_clear_error();
  if (reason == 0 || ERR_GET_REASON(reason) == ERR_R_MALLOC_FAILURE)
    return absl::ResourceExhaustedError("OpenSSL has no memory for a TLS session");
  const char* const why = ERR_reason_error_string(reason);
  return absl::FailedPreconditionError(str_cat(
      "this machine's OpenSSL refuses TLS 1.3 with TLS_AES_128_GCM_SHA256 and X25519, which encrypted "
      "links need: ",
      why != nullptr ? why : "it gives no reason",
      "; allow them in its configuration (FIPS mode, openssl.cnf), or leave strategy.encryption out"));
}

absl::StatusOr<std::unique_ptr<SSL_CTX, Free>> make_context(Side side) {
  ERR_clear_error();
  std::unique_ptr<SSL_CTX, Free> context(
      SSL_CTX_new(side == Side::kServer ? TLS_server_method() : TLS_client_method()));
  SSL_CTX* const c = context.get();
  const bool made = c != nullptr && SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) == 1 &&
                    SSL_CTX_set_ciphersuites(c, "TLS_AES_128_GCM_SHA256") == 1 &&
                    SSL_CTX_set1_groups_list(c, "X25519") == 1 && SSL_CTX_set_num_tickets(c, 0) == 1;
  if (!made) return refusal();
  // A server that answers with a certificate is none of ours: nobody's is trusted.
  if (side == Side::kClient) SSL_CTX_set_verify(c, SSL_VERIFY_PEER, nullptr);
  SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_options(c, SSL_OP_IGNORE_UNEXPECTED_EOF);  // a link says good-bye by a notice
  SSL_CTX_set_psk_use_session_callback(c, &offer_key);
  SSL_CTX_set_psk_find_session_callback(c, &find_key);
  return context;
}

}  // namespace

absl::StatusOr<std::unique_ptr<TlsSession>> TlsSession::make(int fd, Side side, const Key& key,
                                                             std::uint64_t rekey_bytes) {
  auto parts = std::make_unique<Parts>();
  parts->fd = fd;
  parts->key = key;
  parts->rekey_bytes = rekey_bytes;
  PL_ASSIGN_OR_RETURN(const auto context, make_context(side));
  parts->method.reset(BIO_meth_new(BIO_TYPE_SOURCE_SINK, "data link"));
  BIO_METHOD* const method = parts->method.get();
  const bool ready = method != nullptr && BIO_meth_set_write(method, &send_bytes) == 1 &&
                     BIO_meth_set_read(method, &receive_bytes) == 1 &&
                     BIO_meth_set_ctrl(method, &control) == 1;
  BIO* const bio = ready ? BIO_new(method) : nullptr;
  parts->ssl.reset(bio != nullptr ? SSL_new(context.get()) : nullptr);
  if (parts->ssl == nullptr) {
    BIO_free(bio);
    ERR_clear_error();
    return absl::ResourceExhaustedError("OpenSSL has no memory for a TLS session");
  }
  BIO_set_data(bio, parts.get());
  BIO_set_init(bio, 1);
  SSL_set_bio(parts->ssl.get(), bio, bio);
  SSL_set_app_data(parts->ssl.get(), parts.get());
  if (side == Side::kServer)
    SSL_set_accept_state(parts->ssl.get());
  else
    SSL_set_connect_state(parts->ssl.get());
  return std::unique_ptr<TlsSession>(new TlsSession(std::move(parts)));
}

TlsSession::TlsSession(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
TlsSession::~TlsSession() = default;

absl::StatusOr<bool> TlsSession::shake_hands() {
  const std::lock_guard lock(mutex_);
  ERR_clear_error();
  SSL* const ssl = parts_->ssl.get();
  const int done = SSL_do_handshake(ssl);
  if (done == 1) {
    if (SSL_session_reused(ssl) == 1) return true;
    return absl::PermissionDeniedError("TLS: the other end does not know the key");
  }
  if (SSL_get_error(ssl, done) == SSL_ERROR_WANT_READ) return false;
  const absl::Status failed = failure("TLS handshake");
  if (parts_->ended || parts_->error != 0) return failed;
  return absl::PermissionDeniedError(failed.message());
}

// The connection has failed, or else TLS.
absl::Status TlsSession::failure(const char* doing) {
  const unsigned long reason = ERR_peek_error();
  ERR_clear_error();
  if (parts_->error != 0) return connection_error(doing, parts_->error);
  if (parts_->ended) return absl::UnavailableError("the connection ended");
  const char* const why = reason != 0 ? ERR_reason_error_string(reason) : nullptr;
  return absl::UnavailableError(str_cat(doing, ": TLS: ", why != nullptr ? why : "it failed"));
}

// 0: the socket takes none now.
absl::StatusOr<std::size_t> TlsSession::write_piece(const void* data, std::size_t size) {
  SSL* const ssl = parts_->ssl.get();
  ERR_clear_error();
  std::size_t written = 0;
  if (SSL_write_ex(ssl, data, size, &written) != 1) {
    if (SSL_get_error(ssl, 0) == SSL_ERROR_WANT_WRITE) return 0;
    return failure("sending");
  }
  parts_->written += written;
  if (parts_->written >= parts_->rekey_bytes && SSL_key_update(ssl, SSL_KEY_UPDATE_NOT_REQUESTED) == 1)
    parts_->written = 0;
  return written;
}

absl::StatusOr<std::size_t> TlsSession::write_some(std::span<const iovec> pieces) {
  const std::lock_guard lock(mutex_);
  std::size_t total = 0, at = 0;  // at: of the first piece
  while (!pieces.empty()) {
    if (at == pieces[0].iov_len) {
      pieces = pieces.subspan(1);
      at = 0;
      continue;
    }
    const auto* data = static_cast<const std::byte*>(pieces[0].iov_base) + at;
    std::size_t size = std::min(pieces[0].iov_len - at, kRecordBytes);
    if (size < kRecordBytes && pieces.size() > 1) {
      std::memcpy(parts_->record.data(), data, size);
      for (const iovec& next : pieces.subspan(1)) {
        const std::size_t more = std::min(next.iov_len, kRecordBytes - size);
        std::memcpy(parts_->record.data() + size, next.iov_base, more);
        size += more;
        if (size == kRecordBytes) break;
      }
      data = parts_->record.data();
    }
    PL_ASSIGN_OR_RETURN(std::size_t written, write_piece(data, size));
    if (written == 0) return total;
    total += written;
    while (written > 0) {
      const std::size_t part = std::min(written, pieces[0].iov_len - at);
      at += part;
      written -= part;
      if (at < pieces[0].iov_len) break;
      pieces = pieces.subspan(1);
      at = 0;
    }
  }
  return total;
}

absl::StatusOr<std::size_t> TlsSession::read_some(std::span<const iovec> pieces) {
  const std::lock_guard lock(mutex_);
  SSL* const ssl = parts_->ssl.get();
  std::size_t total = 0;
  for (const iovec& piece : pieces) {
    for (std::size_t at = 0; at < piece.iov_len;) {
      ERR_clear_error();
      std::size_t got = 0;
      if (SSL_read_ex(ssl, static_cast<std::byte*>(piece.iov_base) + at, piece.iov_len - at, &got) != 1) {
        // Bytes that came before an end are handed out first; the next call finds the end again.
        // A read may have to send first: new keys, for which the socket has no room now. The next write does.
        const int why = total > 0 ? SSL_ERROR_NONE : SSL_get_error(ssl, 0);
        if (total > 0 || why == SSL_ERROR_WANT_READ || why == SSL_ERROR_WANT_WRITE) return total;
        return failure("receiving");
      }
      at += got;
      total += got;
    }
  }
  return total;
}

std::size_t TlsSession::held() {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(SSL_pending(parts_->ssl.get()));
}

}  // namespace paceline::transport

#include "tests/support/scripted_h2_server.h"

#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <string_view>
#include <utility>

#include "base/text.h"

namespace paceline {

namespace {

constexpr std::size_t kPrefaceBytes = 24, kHeadBytes = 9;
constexpr std::uint8_t kData = 0, kHeaders = 1, kSettings = 4, kPing = 6, kGoAway = 7;  // types of frames
constexpr std::uint8_t kEndStream = 1, kAck = 1, kEndHeaders = 4;                       // flags
constexpr int kPartingMs = 20;                   // between GOAWAY and the close
constexpr std::string_view kStatus200 = "\x88";  // HPACK's static table

int choose_h2(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in,
              unsigned int in_size, void*) {
  constexpr std::string_view kOurs = "\x02h2";
  unsigned char* chosen = nullptr;
  const int result =
      SSL_select_next_proto(&chosen, out_size, reinterpret_cast<const unsigned char*>(kOurs.data()),
                            static_cast<unsigned>(kOurs.size()), in, in_size);
  *out = chosen;
  return result == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_ALERT_FATAL;
}

std::string big_endian(std::uint64_t value, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text += static_cast<char>(value >> (8 * i) & 255u);
  return text;
}

std::string frame(std::uint8_t type, std::uint8_t flags, std::uint32_t stream, std::string_view payload) {
  return big_endian(payload.size(), 3) + big_endian(type, 1) + big_endian(flags, 1) + big_endian(stream, 4) +
         std::string(payload);
}

struct Frame {
  std::uint8_t type = 0, flags = 0;
  std::uint32_t stream = 0;
  std::string payload;
};

// One thread's.
class H2Connection {
 public:
  explicit H2Connection(SSL* ssl) : ssl_(ssl) {}

  bool send(const std::string& bytes) {
    const bool sent = SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size())) > 0;
    ERR_clear_error();
    return sent;
  }
  bool read(std::string& into, std::size_t size) {
    while (buffer_.size() < size) {
      char piece[16384];
      const int n = SSL_read(ssl_, piece, sizeof(piece));
      ERR_clear_error();
      if (n <= 0) return false;
      buffer_.append(piece, static_cast<std::size_t>(n));
    }
    into = buffer_.substr(0, size);
    buffer_.erase(0, size);
    return true;
  }
  bool read(Frame& frame) {
    std::string head;
    if (!read(head, kHeadBytes)) return false;
    const auto at = [&](std::size_t i) {
      return static_cast<std::uint32_t>(static_cast<unsigned char>(head[i]));
    };
    frame.type = static_cast<std::uint8_t>(at(3));
    frame.flags = static_cast<std::uint8_t>(at(4));
    frame.stream = (at(5) & 0x7fu) << 24 | at(6) << 16 | at(7) << 8 | at(8);
    return read(frame.payload, at(0) << 16 | at(1) << 8 | at(2));
  }

 private:
  SSL* const ssl_;
  std::string buffer_;
};

Ssl<SSL_CTX> context_of(const KeyPair& server) {
  Ssl<SSL_CTX> context = server_context(server);
  SSL_CTX_set_alpn_select_cb(context.get(), &choose_h2, nullptr);
  return context;
}

}  // namespace

ScriptedH2Server::ScriptedH2Server(const KeyPair& server, Script script)
    : script_(std::move(script)),
      context_(context_of(server)),
      server_([this](int fd, int number, int) { serve(fd, number); }) {}

std::string ScriptedH2Server::url() const {
  return str_cat("https://127.0.0.1:", server_.port());
}

void ScriptedH2Server::serve(int fd, int number_of_connection) {
  const Ssl<SSL> ssl(SSL_new(context_.get()));
  SSL_set_fd(ssl.get(), fd);
  H2Connection connection(ssl.get());
  std::string preface;
  bool open = SSL_accept(ssl.get()) == 1 && connection.read(preface, kPrefaceBytes) &&
              connection.send(frame(kSettings, 0, 0, ""));
  ERR_clear_error();
  std::uint32_t last = 0;  // the last request that was taken
  for (Frame got; open && connection.read(got);) {
    if (got.type == kSettings && (got.flags & kAck) == 0)
      open = connection.send(frame(kSettings, kAck, 0, ""));
    if (got.type == kPing && (got.flags & kAck) == 0)
      open = connection.send(frame(kPing, kAck, 0, got.payload));
    // The request is whole: with its headers, or with the last of its body.
    if ((got.type != kHeaders && got.type != kData) || (got.flags & kEndStream) == 0) continue;
    const Do what = script_(number_of_connection, ++requests_);
    if (what == Do::kAnswer || what == Do::kAnswerAndGo) {
      last = got.stream;
      ++answered_;
      open = connection.send(frame(kHeaders, kEndHeaders, got.stream, kStatus200) +
                             frame(kData, kEndStream, got.stream, std::to_string(number_of_connection)));
    }
    if (what == Do::kAnswer) continue;
    (void)connection.send(frame(kGoAway, 0, 0, big_endian(last, 4) + big_endian(0, 4)));
    pollfd parting{fd, POLLRDHUP, 0};
    if (what != Do::kRefuseAndEnd) (void)::poll(&parting, 1, kPartingMs);
    break;
  }
}

}  // namespace paceline

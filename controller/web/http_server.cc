// libmicrohttpd runs in a thread of ours, which waits for its sockets and for an eventfd that others write to
// when an answer is there or a stream may have more. A connection that has nothing to send is suspended, and
// costs nothing until the thread finds something for it. So is one in the middle of a TLS handshake, which
// the library would try again and again until the rest is there: the thread waits for its socket. The same
// thread ends connections that take too long: the library's own time-out, which counts silence alone, is off.
//
// MHD_Connection, its Exchange and all maps belong to that thread.

#include "controller/web/http_server.h"

#include <microhttpd.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <optional>
#include <set>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/guarded.h"
#include "base/status.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "controller/web/peer.h"

namespace paceline::web {

namespace {

constexpr int kWaitMs = 100;                   // between two looks at the stop and at late connections
constexpr unsigned kSpareConnections = 32;     // the library takes 10 at once before old ones can go
constexpr std::uint64_t kPassesPerLook = 8;    // at readers that may have gone
constexpr std::size_t kBlockBytes = 32 << 10;  // of a stream, at once
constexpr int kStreamBufferBytes = 128 << 10;  // that the kernel keeps for a reader
constexpr char kTlsPriorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";  // GnuTLS' words

// Outlives the server where answers come late.
class Waker {
 public:
  Waker() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  void wake() const { (void)!::write(fd_.get(), &kOne, sizeof(kOne)); }
  void take() const {
    std::uint64_t count = 0;
    (void)!::read(fd_.get(), &count, sizeof(count));
  }
  int fd() const { return fd_.get(); }

 private:
  static constexpr std::uint64_t kOne = 1;
  const UniqueFd fd_;
};

class PendingAnswer final {
 public:
  explicit PendingAnswer(std::shared_ptr<const Waker> waker) : waker_(std::move(waker)) {}
  void give(HttpAnswer answer) {
    {
      auto kept = answer_.lock();
      if (kept->given) return;
      kept->given = true;
      kept->answer = std::move(answer);
    }
    waker_->wake();
  }
  // Once.
  std::optional<HttpAnswer> take() { return std::exchange(answer_.lock()->answer, std::nullopt); }
  bool is_there() { return answer_.lock()->answer.has_value(); }

 private:
  struct Kept {
    bool given = false;
    std::optional<HttpAnswer> answer;
  };
  const std::shared_ptr<const Waker> waker_;
  Guarded<Kept> answer_;
};

// The last copy of a Reply that goes without an answer gives one.
class ReplyTarget final : public Reply::Target {
 public:
  explicit ReplyTarget(std::shared_ptr<PendingAnswer> pending) : pending_(std::move(pending)) {}
  ~ReplyTarget() override { pending_->give({500, "there is no answer\n"}); }
  void answer(HttpAnswer answer) override { pending_->give(std::move(answer)); }

 private:
  const std::shared_ptr<PendingAnswer> pending_;
};

// One request and its answer.
struct Exchange {
  MHD_Connection* connection = nullptr;
  HttpRequest request;
  std::shared_ptr<PendingAnswer> pending;  // null: the handler is not asked yet
  bool too_large = false, has_nul = false;
  std::shared_ptr<HttpStream> stream;
  HttpStream::Piece piece;  // of the stream: on its way
  std::size_t sent = 0;     // of the piece
};

MHD_Result add_field(void* to, MHD_ValueKind, const char* name, const char* value) {
  auto& fields = *static_cast<HttpRequest::Fields*>(to);
  fields.emplace(name, value == nullptr ? "" : value);
  return MHD_YES;
}

MHD_Result add_header(void* to, MHD_ValueKind, const char* name, const char* value) {
  auto& fields = *static_cast<HttpRequest::Fields*>(to);
  std::string key = name;
  std::ranges::transform(key, key.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c; });
  std::string& joined = fields[key];
  joined = str_cat(joined, joined.empty() ? "" : ", ", value == nullptr ? "" : value);
  return MHD_YES;
}

constexpr std::string_view kNul = "%00";

// Decodes as the library does, but for NUL bytes, which would end the text: they stay as they are.
std::size_t unescape(void*, MHD_Connection*, char* text) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
  };
  char* to = text;
  for (const char* from = text; *from != '\0';) {
    const int high = *from == '%' ? digit(from[1]) : -1, low = high >= 0 ? digit(from[2]) : -1;
    const bool is_byte = low >= 0 && high + low > 0;
    *to++ = is_byte ? static_cast<char>(16 * high + low) : *from;
    from += is_byte ? 3 : 1;
  }
  *to = '\0';
  return static_cast<std::size_t>(to - text);
}

bool has_nul(const HttpRequest& request) {
  const auto is_in = [](std::string_view text) { return text.find(kNul) != std::string_view::npos; };
  return is_in(request.path) || std::ranges::any_of(request.query, [&](const auto& field) {
           return is_in(field.first) || is_in(field.second);
         });
}

std::string client_of(MHD_Connection* connection) {
  const MHD_ConnectionInfo* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
  return peer_of(info == nullptr ? nullptr : info->client_addr);
}

HttpRequest request_of(MHD_Connection* connection, const char* path, const char* method) {
  HttpRequest request{.method = method, .path = path, .peer = client_of(connection)};
  MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, &add_field, &request.query);
  MHD_get_connection_values(connection, MHD_HEADER_KIND, &add_header, &request.headers);
  return request;
}

class HttpServerImpl final : public HttpServer {
 public:
  HttpServerImpl(Handler handler, const HttpLimits& limits, const Clock& clock, TlsFiles tls)
      : handler_(std::move(handler)), limits_(limits), clock_(clock), certificate_(std::move(tls)) {}
  ~HttpServerImpl() override {
    thread_.request_stop();
    waker_->wake();
    if (thread_.joinable()) thread_.join();
    if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
  }

  absl::Status serve(ListenSocket socket) {
    port_ = socket.port;
    const bool tls = certificate_.is_given();
    const MHD_OptionItem end{MHD_OPTION_END, 0, nullptr};
    MHD_OptionItem options[] = {{MHD_OPTION_HTTPS_PRIORITIES, 0, const_cast<char*>(kTlsPriorities)},
                                {MHD_OPTION_HTTPS_CERT_CALLBACK2, 0, reinterpret_cast<void*>(&on_handshake)},
                                end};
    if (!tls) options[0] = end;
    daemon_ = MHD_start_daemon(
        MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG | (tls ? MHD_USE_TLS : 0), 0, nullptr,
        nullptr, &on_request, this, MHD_OPTION_LISTEN_SOCKET, socket.fd.get(), MHD_OPTION_CONNECTION_LIMIT,
        limits_.connections + (limits_.makes_room ? kSpareConnections : 0),
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, limits_.head_bytes, MHD_OPTION_NOTIFY_CONNECTION, &on_connection,
        this, MHD_OPTION_NOTIFY_COMPLETED, &on_completed, this, MHD_OPTION_UNESCAPE_CALLBACK, &unescape,
        nullptr, MHD_OPTION_EXTERNAL_LOGGER, &note, this, MHD_OPTION_ARRAY, options, MHD_OPTION_END);
    if (daemon_ == nullptr)
      return absl::UnavailableError(str_cat("the HTTP server could not be started", start_error_));
    (void)socket.fd.release();  // the daemon's
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    return absl::OkStatus();
  }

  int port() const override { return port_; }
  std::function<void()> waker() const override {
    return [waker = waker_] { waker->wake(); };
  }
  unsigned streams() const override { return streams_.load(); }

 private:
  // The library's words. Those of the start say why there is none; later ones are about garbage from outside.
  static void note(void* self, const char* format, va_list arguments) {
    auto* const server = static_cast<HttpServerImpl*>(self);
    char text[256];
    if (server->daemon_ == nullptr && std::vsnprintf(text, sizeof(text), format, arguments) > 0)
      server->start_error_ = str_cat(": ", std::string_view(text).substr(0, std::strcspn(text, "\n")));
  }

  // The library's connection is the session's pointer, and our server is the connection's.
  static int on_handshake(gnutls_session_t session, const gnutls_cert_retr_st*,
                          gnutls_pcert_st** certificates, unsigned* count, gnutls_ocsp_data_st**, unsigned*,
                          gnutls_privkey_t* key, unsigned* flags) {
    return server_of(session)->certificate_.retrieve(certificates, count, key, flags) ? 0 : -1;
  }

  static HttpServerImpl* server_of(gnutls_session_t session) {
    const MHD_ConnectionInfo* info =
        MHD_get_connection_info(connection_of(session), MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return static_cast<HttpServerImpl*>(info->socket_context);
  }
  static MHD_Connection* connection_of(gnutls_session_t session) {
    return static_cast<MHD_Connection*>(gnutls_session_get_ptr(session));
  }

  // The client's is the last message that a handshake waits for.
  static int on_finished(gnutls_session_t session, unsigned, unsigned, unsigned incoming,
                         const gnutls_datum_t*) {
    if (incoming != 0) server_of(session)->greeting_.erase(connection_of(session));
    return 0;
  }

  static void on_connection(void* self, MHD_Connection* connection, void** context,
                            MHD_ConnectionNotificationCode code) {
    auto* const server = static_cast<HttpServerImpl*>(self);
    *context = self;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
      server->ends_.erase(connection);
      server->greeting_.erase(connection);
      std::erase_if(server->arrived_, [&](const Arrived& each) { return each.connection == connection; });
    } else {
      server->arrived_.push_back({connection, client_of(connection)});
      if (server->limits_.makes_room) server->make_room();
      if (server->certificate_.is_given()) {
        server->greeting_[connection] = false;
        gnutls_handshake_set_hook_function(session_of(connection), GNUTLS_HANDSHAKE_FINISHED,
                                           GNUTLS_HOOK_POST, &on_finished);
      }
      server->ends_[connection] = server->clock_.now() + server->limits_.request;
    }
  }

  static void on_completed(void* self, MHD_Connection* connection, void** state, MHD_RequestTerminationCode) {
    auto* const server = static_cast<HttpServerImpl*>(self);
    const std::unique_ptr<Exchange> exchange(static_cast<Exchange*>(*state));
    *state = nullptr;
    if (exchange == nullptr) return;
    server->suspended_.erase(exchange.get());
    if (exchange->stream != nullptr) --server->streams_;
    server->ends_[connection] = server->clock_.now() + server->limits_.request;  // of the next request
  }

  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* path, const char* method,
                               const char*, const char* data, std::size_t* size, void** state) {
    auto* const server = static_cast<HttpServerImpl*>(self);
    if (*state == nullptr) {
      auto exchange = std::make_unique<Exchange>();
      exchange->connection = connection;
      exchange->request = request_of(connection, path, method);
      // Refused before it comes where it says so; else where the bound is passed.
      exchange->too_large = server->says_too_large(exchange->request);
      exchange->has_nul = has_nul(exchange->request);
      *state = exchange.release();
      return static_cast<Exchange*>(*state)->too_large
                 ? server->send(*static_cast<Exchange*>(*state), too_large())
                 : MHD_YES;
    }
    return server->go_on(*static_cast<Exchange*>(*state), data, size);
  }

  static HttpAnswer too_large() { return {413, "the body is too large\n"}; }

  bool says_too_large(const HttpRequest& request) const {
    const std::string& text = request.header("content-length");
    std::size_t length = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), length);
    return !text.empty() && (parsed.ec != std::errc() || length > limits_.body_bytes);
  }

  MHD_Result go_on(Exchange& exchange, const char* data, std::size_t* size) {
    if (*size > 0) {
      exchange.too_large |= exchange.request.body.size() + *size > limits_.body_bytes;
      if (!exchange.too_large) exchange.request.body.append(data, *size);
      *size = 0;
      return MHD_YES;
    }
    if (exchange.pending == nullptr) {
      exchange.pending = std::make_shared<PendingAnswer>(waker_);
      Reply reply(std::make_shared<ReplyTarget>(exchange.pending));
      if (exchange.too_large) {
        reply(too_large());
      } else if (exchange.has_nul) {
        reply({400, "%00 is allowed nowhere in an address\n"});
      } else {
        handler_(std::move(exchange.request), std::move(reply));
      }
    }
    if (std::optional<HttpAnswer> answer = exchange.pending->take())
      return send(exchange, *std::move(answer));
    if (stopping_) return MHD_NO;
    suspend(exchange);
    return MHD_YES;
  }

  MHD_Result send(Exchange& exchange, HttpAnswer answer) {
    if (answer.stream != nullptr && streams_ >= limits_.streams)
      answer = {503, str_cat("there are ", limits_.streams, " streams already; try again later\n")};
    const bool large = answer.stream == nullptr && answer.body.size() > kBlockBytes;
    if (large && !has_room(answer.body.size(), client_of(exchange.connection)))
      answer = {503, "so much waits for slow readers that there is no room for more; try again later\n"};
    if (limits_.finish != nullptr) limits_.finish(answer);
    MHD_Response* response = nullptr;
    if (answer.stream == nullptr && answer.body.size() > kBlockBytes) {
      const std::size_t size = answer.body.size();
      response = MHD_create_response_from_callback(
          size, kBlockBytes, &read_body, new BodyOf(this, exchange.connection, std::move(answer.body)),
          &end_body);
    } else if (answer.stream != nullptr) {
      response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, kBlockBytes, &read_stream,
                                                   new StreamOf{this, &exchange}, &end_stream);
    } else {
      response =
          MHD_create_response_from_buffer(answer.body.size(), answer.body.data(), MHD_RESPMEM_MUST_COPY);
    }
    if (response == nullptr) return MHD_NO;
    if (answer.stream != nullptr) begin_stream(exchange, std::move(answer.stream));
    if (!answer.content_type.empty())
      MHD_add_response_header(response, "Content-Type", answer.content_type.c_str());
    if (!limits_.keep_alive) MHD_add_response_header(response, "Connection", "close");
    bool cached = false;
    for (const auto& [name, value] : answer.headers) {
      cached |= name == "Cache-Control";
      MHD_add_response_header(response, name.c_str(), value.c_str());
    }
    if (!cached) MHD_add_response_header(response, "Cache-Control", "no-store");
    const MHD_Result queued =
        MHD_queue_response(exchange.connection, static_cast<unsigned>(answer.status), response);
    MHD_destroy_response(response);
    return queued;
  }

  // A large body may take longer than a request, as long as its reader takes some of it.
  struct BodyOf {
    BodyOf(HttpServerImpl* of, MHD_Connection* to, std::string body)
        : server(of), connection(to), text(std::move(body)) {
      server->waiting_bytes_[peer] += text.size();
    }
    ~BodyOf() {
      if ((server->waiting_bytes_[peer] -= text.size()) == 0) server->waiting_bytes_.erase(peer);
    }
    HttpServerImpl* server;
    MHD_Connection* connection;
    std::string text;
    const std::string peer = client_of(connection);
  };

  bool has_room(std::size_t bytes, const std::string& peer) const {
    std::size_t of_all = 0, of_peer = 0;
    for (const auto& [each, waiting] : waiting_bytes_) {
      of_all += waiting;
      if (each == peer) of_peer = waiting;
    }
    return of_all + bytes <= limits_.waiting_bytes &&
           (of_peer == 0 || of_peer + bytes <= limits_.waiting_bytes / 2);
  }

  static void end_body(void* of) { delete static_cast<BodyOf*>(of); }
  static ssize_t read_body(void* of, std::uint64_t at, char* to, std::size_t room) {
    const BodyOf& body = *static_cast<BodyOf*>(of);
    if (at >= body.text.size()) return MHD_CONTENT_READER_END_OF_STREAM;
    body.server->ends_[body.connection] = body.server->clock_.now() + body.server->limits_.slow_reader;
    const std::size_t size = std::min<std::size_t>(room, body.text.size() - at);
    std::memcpy(to, body.text.data() + at, size);
    return static_cast<ssize_t>(size);
  }

  struct StreamOf {
    HttpServerImpl* server;
    Exchange* exchange;
  };
  static void end_stream(void* of) { delete static_cast<StreamOf*>(of); }

  void begin_stream(Exchange& exchange, std::shared_ptr<HttpStream> stream) {
    exchange.stream = std::move(stream);
    ++streams_;
    if (const int fd = socket_of(exchange.connection); fd >= 0)
      (void)::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kStreamBufferBytes, sizeof(kStreamBufferBytes));
  }

  static ssize_t read_stream(void* of, std::uint64_t, char* to, std::size_t room) {
    const auto [server, exchange] = *static_cast<StreamOf*>(of);
    return server->next_block(*exchange, to, room);
  }

  // It is asked only when the reader has taken what was before, but for what lies in the kernel.
  ssize_t next_block(Exchange& exchange, char* to, std::size_t room) {
    if (stopping_) return MHD_CONTENT_READER_END_WITH_ERROR;
    ends_[exchange.connection] = clock_.now() + limits_.slow_reader;
    if (!has_more(exchange)) {
      if (exchange.piece.last) return MHD_CONTENT_READER_END_OF_STREAM;
      take_piece(exchange);
    }
    if (!has_more(exchange)) {
      if (exchange.piece.last) return MHD_CONTENT_READER_END_OF_STREAM;
      suspend(exchange);
      return 0;
    }
    const std::string_view rest = std::string_view(*exchange.piece.text).substr(exchange.sent, room);
    std::memcpy(to, rest.data(), rest.size());
    exchange.sent += rest.size();
    return static_cast<ssize_t>(rest.size());
  }

  static bool has_more(const Exchange& exchange) {
    return exchange.piece.text != nullptr && exchange.sent < exchange.piece.text->size();
  }

  void take_piece(Exchange& exchange) {
    exchange.piece = exchange.stream->next(clock_.now());
    exchange.sent = 0;
  }

  void suspend(Exchange& exchange) {
    ends_[exchange.connection] = TimePoint::max();  // it waits for us
    suspended_.insert(&exchange);
    MHD_suspend_connection(exchange.connection);
  }

  void resume(Exchange& exchange) {
    ends_[exchange.connection] = clock_.now() + (exchange.stream ? limits_.slow_reader : limits_.request);
    suspended_.erase(&exchange);
    MHD_resume_connection(exchange.connection);
  }

  // The library does not look at a suspended connection: a reader that has gone would be noticed at the next
  // piece only. A TLS reader says good-bye first, so that there are bytes to read.
  bool has_gone(const Exchange& exchange) const {
    pollfd reader{socket_of(exchange.connection), POLLRDHUP, 0};
    return passes_ % kPassesPerLook == 0 && ::poll(&reader, 1, 0) > 0;
  }

  bool may_go_on(Exchange& exchange) {
    if (exchange.stream == nullptr) return exchange.pending->is_there();
    take_piece(exchange);
    exchange.piece.last |= has_gone(exchange);
    return has_more(exchange) || exchange.piece.last;
  }

  void resume_those_with_more() {
    ++passes_;
    std::vector<Exchange*> ready;
    for (Exchange* exchange : suspended_) {
      if (may_go_on(*exchange)) ready.push_back(exchange);
    }
    for (Exchange* exchange : ready) resume(*exchange);
  }

  static int socket_of(MHD_Connection* connection) {
    const MHD_ConnectionInfo* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info == nullptr ? -1 : info->connect_fd;
  }

  bool waits_for_us(MHD_Connection* connection) const {
    const auto end = ends_.find(connection);
    return end != ends_.end() && end->second == TimePoint::max();
  }

  void make_room() {
    std::map<std::string_view, unsigned> of_peers;
    unsigned open = 0;
    for (const Arrived& each : arrived_) {
      if (each.is_ended) continue;
      ++open;
      ++of_peers[each.peer];
    }
    if (open <= limits_.connections) return;
    const auto most = std::ranges::max_element(of_peers, {}, [](const auto& of) { return of.second; });
    Arrived* ended = nullptr;
    for (Arrived& each : arrived_) {
      if (each.is_ended || each.peer != most->first) continue;
      const bool idle = !waits_for_us(each.connection);
      if (ended == nullptr || idle) ended = &each;
      if (idle) break;
    }
    ended->is_ended = true;
    (void)::shutdown(socket_of(ended->connection), SHUT_RDWR);
  }

  void end_late() {
    const TimePoint now = clock_.now();
    for (const auto& [connection, end] : ends_) {
      if (now >= end) (void)::shutdown(socket_of(connection), SHUT_RDWR);
    }
  }

  static gnutls_session_t session_of(MHD_Connection* connection) {
    const MHD_ConnectionInfo* info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
    return static_cast<gnutls_session_t>(info->tls_session);
  }

  // Until wait() finds something for them.
  void hold_greetings() {
    for (auto& [connection, held] : greeting_) {
      if (!std::exchange(held, true)) MHD_suspend_connection(connection);
    }
  }

  static void resume_greeting(MHD_Connection* connection, bool& held) {
    held = false;
    MHD_resume_connection(connection);
  }

  // Waits for what the library waits for, handshakes' sockets, our own waker, and the time until the next
  // look. REQUIRES: all of greeting_ are held.
  void wait() {
    MHD_UNSIGNED_LONG_LONG until = kWaitMs;
    int limit_ms = kWaitMs;
    if (MHD_get_timeout(daemon_, &until) == MHD_YES)
      limit_ms = static_cast<int>(std::min<std::uint64_t>(until, kWaitMs));
    const MHD_DaemonInfo* const info = MHD_get_daemon_info(daemon_, MHD_DAEMON_INFO_EPOLL_FD);
    std::vector<pollfd> waits = {{waker_->fd(), POLLIN, 0},
                                 {info == nullptr ? -1 : info->epoll_fd, POLLIN, 0}};
    for (const auto& [connection, held] : greeting_) {
      const bool writes = gnutls_record_get_direction(session_of(connection)) == 1;
      waits.push_back({socket_of(connection), static_cast<short>(writes ? POLLOUT : POLLIN), 0});
    }
    if (::poll(waits.data(), waits.size(), limit_ms) <= 0) return;
    if (waits[0].revents != 0) waker_->take();
    auto looked_at = waits.begin() + 2;
    for (auto& [connection, held] : greeting_) {
      if ((looked_at++)->revents != 0) resume_greeting(connection, held);
    }
  }

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      wait();
      resume_those_with_more();
      (void)MHD_run(daemon_);
      hold_greetings();
      end_late();
    }
    // The library wants none suspended at its end.
    stopping_ = true;
    while (!suspended_.empty()) resume(**suspended_.begin());
    for (auto& [connection, held] : greeting_) resume_greeting(connection, held);
    (void)MHD_run(daemon_);
  }

  const Handler handler_;
  const HttpLimits limits_;
  const Clock& clock_;
  const std::shared_ptr<const Waker> waker_ = std::make_shared<Waker>();
  int port_ = 0;
  MHD_Daemon* daemon_ = nullptr;
  std::string start_error_;
  std::atomic<unsigned> streams_ = 0;
  // The thread's; after it, the destructor's.
  ServerCertificate certificate_;
  bool stopping_ = false;
  std::uint64_t passes_ = 0;
  std::map<std::string, std::size_t> waiting_bytes_;  // of all BodyOf, by peer
  std::map<MHD_Connection*, TimePoint> ends_;
  struct Arrived {
    MHD_Connection* connection;
    std::string peer;
    bool is_ended = false;  // and about to go
  };
  std::vector<Arrived> arrived_;              // the newest last
  std::map<MHD_Connection*, bool> greeting_;  // by TLS, in their handshake: whether it is held
  std::set<Exchange*> suspended_;
  std::jthread thread_;
};

HttpAnswer answer_path(const std::map<std::string, HttpServer::PathHandler>& handlers,
                       const HttpRequest& request) {
  if (request.method != "GET" && request.method != "HEAD") return {405, "only GET and HEAD are served\n"};
  if (const auto found = handlers.find(request.path); found != handlers.end()) return found->second();
  std::string text = "there is nothing here; try";
  for (const auto& [path, handler] : handlers) text += str_cat(" ", path);
  return {404, text + "\n"};
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::start(const std::string& address, Handler handler,
                                                              const HttpLimits& limits, const Clock& clock,
                                                              TlsFiles tls) {
  PL_ASSIGN_OR_RETURN(ListenSocket socket, listen_on(address));
  return start(std::move(socket), std::move(handler), limits, clock, std::move(tls));
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::start(ListenSocket socket, Handler handler,
                                                              const HttpLimits& limits, const Clock& clock,
                                                              TlsFiles tls) {
  auto server = std::make_unique<HttpServerImpl>(std::move(handler), limits, clock, std::move(tls));
  PL_RETURN_IF_ERROR(server->serve(std::move(socket)));
  return server;
}

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::start(const std::string& address,
                                                              std::map<std::string, PathHandler> handlers,
                                                              const Clock& clock, TlsFiles tls) {
  return start(
      address,
      [handlers = std::move(handlers)](const HttpRequest& request, const Reply& reply) {
        reply(answer_path(handlers, request));
      },
      {.makes_room = true, .body_bytes = kMaxRequestBytes}, clock, std::move(tls));
}

}  // namespace paceline::web

// libmicrohttpd runs in a thread of ours (MHD_run_wait), so that the same thread may also end connections
// that take too long: its own time-out counts silence only.

#include "controller/web/http_server.h"

#include <arpa/inet.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <charconv>
#include <cstring>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

#include "base/status.h"
#include "base/unique_fd.h"

namespace paceline::web {

namespace {

constexpr int kWaitMs = 100;  // between two looks at the stop and at late connections
constexpr unsigned kSilenceSeconds = 5;

struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;
};

absl::StatusOr<Address> parse_address(const std::string& text) {
  const auto wrong = [&](std::string_view why) {
    return absl::InvalidArgumentError(
        str_cat("address \"", text, "\": ", why, "; it must be IP:PORT or :PORT, such as 0.0.0.0:8080"));
  };
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return wrong("there is no port");
  std::uint16_t port = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data() + colon + 1, end, port);
  if (error != std::errc() || stop != end) return wrong("the port is no number from 0 to 65535");
  std::string host = text.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') host = host.substr(1, host.size() - 2);
  Address address;
  auto* const v4 = reinterpret_cast<sockaddr_in*>(&address.storage);
  auto* const v6 = reinterpret_cast<sockaddr_in6*>(&address.storage);
  if (host.empty() || inet_pton(AF_INET, host.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    address.length = sizeof(*v4);
  } else if (inet_pton(AF_INET6, host.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    address.length = sizeof(*v6);
  } else {
    return wrong("the host is no IP address");
  }
  return address;
}

absl::StatusOr<UniqueFd> listen_on(const std::string& text) {
  PL_ASSIGN_OR_RETURN(const Address address, parse_address(text));
  const auto failed = [&](const char* what) {
    return absl::UnavailableError(str_cat("address \"", text, "\": ", what, ": ", std::strerror(errno)));
  };
  UniqueFd fd(::socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return failed("no socket");
  const int on = 1;
  (void)::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length) != 0) {
    return failed("it can't be bound");
  }
  if (::listen(fd.get(), SOMAXCONN) != 0) return failed("it can't be listened on");
  return fd;
}

class HttpServerImpl final : public HttpServer {
 public:
  HttpServerImpl(std::map<std::string, Handler> handlers, const Clock& clock)
      : handlers_(std::move(handlers)), clock_(clock) {}
  ~HttpServerImpl() override {
    thread_.request_stop();
    if (thread_.joinable()) thread_.join();
    if (daemon_ != nullptr) MHD_stop_daemon(daemon_);
  }

  absl::Status listen(const std::string& address) {
    PL_ASSIGN_OR_RETURN(UniqueFd fd, listen_on(address));
    sockaddr_storage bound{};
    socklen_t length = sizeof(bound);
    if (::getsockname(fd.get(), reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
      return absl::UnavailableError(str_cat("address \"", address, "\": ", std::strerror(errno)));
    }
    port_ = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                              : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
    daemon_ = MHD_start_daemon(
        MHD_USE_EPOLL, 0, nullptr, nullptr, &on_request, this, MHD_OPTION_LISTEN_SOCKET, fd.get(),
        MHD_OPTION_CONNECTION_LIMIT, kMaxConnections, MHD_OPTION_CONNECTION_MEMORY_LIMIT, kMaxRequestBytes,
        MHD_OPTION_CONNECTION_TIMEOUT, kSilenceSeconds, MHD_OPTION_NOTIFY_CONNECTION, &on_connection, this,
        MHD_OPTION_EXTERNAL_LOGGER, &ignore, nullptr, MHD_OPTION_END);
    if (daemon_ == nullptr) return absl::UnavailableError("the HTTP server could not be started");
    (void)fd.release();  // the daemon's
    thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
    return absl::OkStatus();
  }

  int port() const override { return port_; }

 private:
  static void ignore(void*, const char*, va_list) {}  // garbage from outside is no news

  static void on_connection(void* self, MHD_Connection* connection, void**,
                            MHD_ConnectionNotificationCode code) {
    auto* const server = static_cast<HttpServerImpl*>(self);
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
      server->ends_.erase(connection);
    } else {
      server->ends_[connection] = server->clock_.now() + kConnectionLimit;
    }
  }

  static MHD_Result on_request(void* self, MHD_Connection* connection, const char* path, const char* method,
                               const char*, const char*, std::size_t* body, void**) {
    const auto* const server = static_cast<const HttpServerImpl*>(self);
    *body = 0;  // whatever comes is passed over
    const std::string_view verb = method;
    HttpAnswer answer;
    const auto handler = server->handlers_.find(path);
    if (verb != "GET" && verb != "HEAD") {
      answer = {405, "only GET and HEAD are served\n"};
    } else if (handler == server->handlers_.end()) {
      answer = {404, server->known_paths()};
    } else {
      answer = handler->second();
    }
    MHD_Response* const response =
        MHD_create_response_from_buffer(answer.body.size(), answer.body.data(), MHD_RESPMEM_MUST_COPY);
    if (response == nullptr) return MHD_NO;
    MHD_add_response_header(response, "Content-Type", answer.content_type.c_str());
    MHD_add_response_header(response, "Connection", "close");
    MHD_add_response_header(response, "Cache-Control", "no-store");
    if (answer.status == MHD_HTTP_METHOD_NOT_ALLOWED) MHD_add_response_header(response, "Allow", "GET, HEAD");
    const MHD_Result result = MHD_queue_response(connection, static_cast<unsigned>(answer.status), response);
    MHD_destroy_response(response);
    return result;
  }

  std::string known_paths() const {
    std::string text = "there is nothing here; try";
    for (const auto& [path, handler] : handlers_) text += str_cat(" ", path);
    return text + "\n";
  }

  void run(const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      (void)MHD_run_wait(daemon_, kWaitMs);
      const TimePoint now = clock_.now();
      for (const auto& [connection, end] : ends_) {
        if (now < end) continue;
        const MHD_ConnectionInfo* info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        if (info != nullptr) (void)::shutdown(info->connect_fd, SHUT_RDWR);
      }
    }
  }

  const std::map<std::string, Handler> handlers_;
  const Clock& clock_;
  int port_ = 0;
  MHD_Daemon* daemon_ = nullptr;
  std::map<MHD_Connection*, TimePoint> ends_;  // the thread's; after it, the destructor's
  std::jthread thread_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::start(const std::string& address,
                                                              std::map<std::string, Handler> handlers,
                                                              const Clock& clock) {
  auto server = std::make_unique<HttpServerImpl>(std::move(handlers), clock);
  PL_RETURN_IF_ERROR(server->listen(address));
  return server;
}

}  // namespace paceline::web

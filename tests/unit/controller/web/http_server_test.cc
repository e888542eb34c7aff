#include "controller/web/http_server.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/rng.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "tests/support/fake_clock.h"
#include "tests/support/no_descriptors.h"

namespace paceline::web {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class HttpServerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto always = [](int status, const char* body) { return [=] { return HttpAnswer{status, body}; }; };
    auto server = HttpServer::start(
        "127.0.0.1:0", {{"/healthz", always(200, "ok\n")}, {"/readyz", always(503, "not yet\n")}}, clock_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  UniqueFd connect(in_addr_t from = INADDR_LOOPBACK) const {
    UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const timeval patience{.tv_sec = 60, .tv_usec = 0};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    sockaddr_in own{}, to{};
    own.sin_family = to.sin_family = AF_INET;
    own.sin_addr.s_addr = htonl(from);
    if (from != INADDR_LOOPBACK) {
      EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&own), sizeof(own)), 0);
    }
    to.sin_port = htons(static_cast<std::uint16_t>(server_->port()));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&to), sizeof(to)), 0);
    return fd;
  }
  static void send(const UniqueFd& fd, std::string_view text) {
    while (!text.empty()) {
      const ssize_t sent = ::send(fd.get(), text.data(), text.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;  // it has closed already
      text.remove_prefix(static_cast<std::size_t>(sent));
    }
  }
  // Until the server closes.
  static std::string receive(const UniqueFd& fd) {
    std::string all;
    char buffer[4096];
    for (ssize_t n; (n = ::recv(fd.get(), buffer, sizeof(buffer), 0)) > 0;) all.append(buffer, n);
    return all;
  }
  std::string ask(std::string_view request) const {
    const UniqueFd fd = connect();
    send(fd, request);
    return receive(fd);
  }

  FakeClock clock_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, StartThatFailsSaysTheSystemsReason) {
  auto socket = listen_on("127.0.0.1:0");
  ASSERT_TRUE(socket.ok()) << socket.status();
  const NoDescriptors none;
  const absl::Status failed = HttpServer::start(
                                  *std::move(socket), [](const HttpRequest&, const Reply&) {}, {}, clock_)
                                  .status();
  EXPECT_TRUE(absl::IsUnavailable(failed));
  EXPECT_THAT(std::string(failed.message()), HasSubstr(std::strerror(EMFILE)));
}

TEST_F(HttpServerTest, ServesWhatItHas) {
  const std::string ok = ask("GET /healthz?verbose HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(ok, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(ok, EndsWith("\r\n\r\nok\n"));
  EXPECT_THAT(ok, HasSubstr("Content-Type: text/plain; charset=utf-8\r\n"));
  EXPECT_THAT(ask("GET /readyz HTTP/1.0\r\n\r\n"), HasSubstr(" 503 "));
  const std::string head = ask("HEAD /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(head, StartsWith("HTTP/1.1 200 "));
  EXPECT_THAT(head, EndsWith("\r\n\r\n"));
}

TEST_F(HttpServerTest, RequestsBringTheAddressOfTheirClient) {
  auto server = HttpServer::start(
      "127.0.0.1:0",
      [](const HttpRequest& request, const Reply& reply) {
        reply({200, request.peer});
      },
      {}, clock_);
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  EXPECT_THAT(ask("GET / HTTP/1.1\r\nHost: x\r\nX-Forwarded-For: 10.0.0.7\r\n\r\n"),
              EndsWith("\r\n\r\n127.0.0.1"));
}

TEST_F(HttpServerTest, RefusesTheRest) {
  const std::string missing = ask("GET /../etc/passwd HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(missing, StartsWith("HTTP/1.1 404 "));
  EXPECT_THAT(missing, EndsWith("try /healthz /readyz\n"));
  EXPECT_THAT(ask("POST /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"),
              StartsWith("HTTP/1.1 405 "));
}

TEST_F(HttpServerTest, SurvivesGarbage) {
  Rng rng(1, 0);
  for (int i = 0; i < 200; ++i) {
    std::string text = i % 2 == 0 ? "GET /healthz HTTP/1.1\r\n" : "";
    const std::uint64_t size = rng.below(2000);
    for (std::uint64_t k = 0; k < size; ++k) text += static_cast<char>(rng.below(256));
    const UniqueFd fd = connect();
    send(fd, text);
  }
  EXPECT_THAT(ask("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, HugeHeadsAreRefused) {
  const std::string answer =
      ask(str_cat("GET /healthz HTTP/1.1\r\nX: ", std::string(1 << 20, 'x'), "\r\n\r\n"));
  EXPECT_THAT(answer, ::testing::Not(HasSubstr(" 200 ")));
  EXPECT_THAT(ask("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, ASlowConnectionIsEndedInTime) {
  const UniqueFd slow = connect();
  send(slow, "GET /heal");
  EXPECT_THAT(ask("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.1 200 "))
      << "nobody waits for it; and it has been accepted before this one";
  clock_.advance(kConnectionLimit);
  EXPECT_EQ(receive(slow), "");
}

TEST_F(HttpServerTest, IdleConnectionsMakeRoomForNewOnes) {
  std::vector<UniqueFd> idle;
  for (unsigned i = 0; i < 5 * kMaxConnections; ++i) idle.push_back(connect());
  EXPECT_THAT(ask("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.1 200 "));
  for (unsigned i = 0; i < 4 * kMaxConnections; ++i) EXPECT_EQ(receive(idle[i]), "");
  send(idle.back(), "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(receive(idle.back()), StartsWith("HTTP/1.1 200 ")) << "the newest are left alone";
}

TEST_F(HttpServerTest, RoomIsMadeByTheAddressWithTheMostConnections) {
  const UniqueFd other = connect(INADDR_LOOPBACK + 1);
  std::vector<UniqueFd> idle;
  for (unsigned i = 0; i < 2 * kMaxConnections; ++i) idle.push_back(connect());
  for (unsigned i = 0; i <= kMaxConnections; ++i) EXPECT_EQ(receive(idle[i]), "");
  send(other, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(receive(other), StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, ManyIdleConnectionsDoNotLockOthersOutForEver) {
  auto started = HttpServer::start(
      "127.0.0.1:0",
      [](const HttpRequest&, const Reply& reply) {
        reply({200, "ok\n"});
      },
      {}, clock_);
  ASSERT_TRUE(started.ok()) << started.status();
  server_ = *std::move(started);
  std::vector<UniqueFd> idle;
  for (unsigned i = 1; i < kMaxConnections; ++i) idle.push_back(connect());
  EXPECT_THAT(ask("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"), StartsWith("HTTP/1.1 200 "))
      << "all before it are accepted by now";
  const UniqueFd last = connect(), late = connect();
  send(late, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
  clock_.advance(kConnectionLimit);
  for (const UniqueFd& fd : idle) EXPECT_EQ(receive(fd), "");
  EXPECT_THAT(receive(late), StartsWith("HTTP/1.1 200 "));
}

TEST(HttpServerAddressTest, ErrorsSayWhatIsAllowed) {
  FakeClock clock;
  for (const char* address :
       {"", "8080", "localhost:8080", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "::1"}) {
    const auto server = HttpServer::start(address, {}, clock);
    EXPECT_EQ(server.status().code(), absl::StatusCode::kInvalidArgument) << address;
    EXPECT_THAT(std::string(server.status().message()), HasSubstr("such as 0.0.0.0:8080"));
  }
  auto first = HttpServer::start("127.0.0.1:0", {}, clock);
  ASSERT_TRUE(first.ok());
  const auto second = HttpServer::start(str_cat("127.0.0.1:", (*first)->port()), {}, clock);
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace paceline::web

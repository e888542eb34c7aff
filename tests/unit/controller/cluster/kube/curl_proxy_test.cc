// proxy-url of a kubeconfig: all that is said to the API server goes through it, and TLS ends at the server.

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <list>
#include <string_view>
#include <thread>
#include <vector>

#include "base/file.h"
#include "base/guarded.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/test_certificates.h"
#include "tests/unit/controller/cluster/kube/transport_fixture.h"

namespace paceline::kube {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Answers CONNECT and carries bytes to and fro, or refuses.
class TunnelProxy {
 public:
  explicit TunnelProxy(std::string refusal = "") : refusal_(std::move(refusal)) {
    sockaddr_in address = loopback(0);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(listener_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_.get(), 16), 0);
    EXPECT_EQ(::getsockname(listener_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~TunnelProxy() {
    ::eventfd_write(stopped_.get(), 1);
    acceptor_.join();
  }
  std::string url(const std::string& who = "") const { return str_cat("http://", who, "127.0.0.1:", port_); }
  std::vector<std::string> heads() { return *heads_.lock(); }  // of what clients asked for

 private:
  static sockaddr_in loopback(int port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    return address;
  }
  void accept_all() {
    std::list<std::jthread> tunnels;
    pollfd fds[] = {{stopped_.get(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    while (::poll(fds, 2, -1) > 0 && fds[0].revents == 0) {
      UniqueFd client(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      tunnels.emplace_back([this, from = std::move(client)] { tunnel(from.get()); });
    }
  }
  void tunnel(int client) {
    std::string head;
    for (char byte = 0; !head.ends_with("\r\n\r\n") && ::recv(client, &byte, 1, 0) == 1;) head += byte;
    heads_.lock()->push_back(head);
    if (!refusal_.empty()) {
      (void)!::send(client, refusal_.data(), refusal_.size(), MSG_NOSIGNAL);
      return;
    }
    const std::string target = head.substr(0, head.find(" HTTP/"));
    const sockaddr_in address = loopback(std::stoi(target.substr(target.rfind(':') + 1)));
    const UniqueFd server(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(server.get(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) return;
    constexpr std::string_view kYes = "HTTP/1.1 200 Connection established\r\n\r\n";
    (void)!::send(client, kYes.data(), kYes.size(), MSG_NOSIGNAL);
    pollfd fds[] = {{stopped_.get(), POLLIN, 0}, {client, POLLIN, 0}, {server.get(), POLLIN, 0}};
    char bytes[16384];
    while (::poll(fds, 3, -1) > 0 && fds[0].revents == 0) {
      for (const int from : {1, 2}) {
        if (fds[from].revents == 0) continue;
        const ssize_t n = ::recv(fds[from].fd, bytes, sizeof(bytes), 0);
        if (n <= 0) return;
        (void)!::send(fds[3 - from].fd, bytes, static_cast<std::size_t>(n), MSG_NOSIGNAL);
      }
    }
  }

  const std::string refusal_;
  const UniqueFd listener_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  const UniqueFd stopped_{::eventfd(0, EFD_CLOEXEC)};
  int port_ = 0;
  Guarded<std::vector<std::string>> heads_;
  std::thread acceptor_;
};

class CurlProxyTest : public ::testing::Test {
 protected:
  // As a user has it: from a kubeconfig.
  std::unique_ptr<Transport> open(const std::string& server, const std::string& proxy) {
    const std::string authority = folder_.path() + "/ca.pem", config = folder_.path() + "/config";
    EXPECT_TRUE(write_file_atomically(authority, authority_.certificate_pem()).ok());
    EXPECT_TRUE(
        write_file_atomically(config, str_cat("clusters: [{name: c, cluster: {server: \"", server,
                                              "\", certificate-authority: ca.pem, proxy-url: \"", proxy,
                                              "\"}}]\nusers: [{name: u, user: {token: secret}}]\n"
                                              "contexts: [{name: x, context: {cluster: c, user: u}}]\n"
                                              "current-context: x\n"))
            .ok());
    auto access = find_access({.kubeconfig = config}, clock_, Logger::none());
    EXPECT_TRUE(access.ok()) << access.status();
    auto transport = open_curl_transport(access->endpoint, access->credentials, Logger::none());
    EXPECT_TRUE(transport.ok()) << transport.status();
    return *std::move(transport);
  }

  const SystemClock clock_{};
  const TemporaryFolder folder_;
  const TestAuthority authority_{"kubernetes"};
};

TEST_F(CurlProxyTest, CallsAndStreamsGoThroughATunnelAndTlsEndsAtTheServer) {
  ::setenv("NO_PROXY", "*", 1);  // is for proxies of the environment
  ::setenv("no_proxy", "*", 1);
  ScriptedHttpServer server(
      [](const ScriptedRequest& request, ScriptedAnswer& answer) {
        answer.reply(200, request.headers.at("authorization"));
      },
      {.server = authority_.issue("server", "IP:127.0.0.1")});
  TunnelProxy proxy;
  const auto transport = open(server.url(), proxy.url("me:pass@"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(answered(transport->call(get("/api"))).body, "Bearer secret");
  std::string streamed;
  const auto response =
      transport->stream(get("/api"), [&](std::string_view bytes) { return streamed += bytes, true; }, {});
  ASSERT_TRUE(response.ok()) << response.status();
  EXPECT_EQ(streamed, "Bearer secret");
  const std::string connect = str_cat("CONNECT 127.0.0.1:", server.port(), " HTTP/1.1\r\n");
  EXPECT_THAT(proxy.heads(), ElementsAre(HasSubstr(connect), HasSubstr(connect)))
      << "one tunnel for all calls";
  for (const std::string& head : proxy.heads()) {
    EXPECT_THAT(head, HasSubstr("Proxy-Authorization: Basic bWU6cGFzcw==")) << "me:pass";
    EXPECT_THAT(head, ::testing::Not(HasSubstr("secret"))) << "the token is for the server alone";
  }
  ::unsetenv("NO_PROXY");
  ::unsetenv("no_proxy");
}

TEST_F(CurlProxyTest, APlainServerIsAskedThroughTheProxyToo) {
  Guarded<std::string> target;
  ScriptedHttpServer proxy([&](const ScriptedRequest& request, ScriptedAnswer& answer) {
    *target.lock() = request.target;
    answer.reply(200, "by the proxy");
  });
  const auto transport = open("http://127.0.0.1:1/base", proxy.url());
  EXPECT_EQ(answered(transport->call(get("/api?x=y"))).body, "by the proxy");
  EXPECT_EQ(*target.lock(), "http://127.0.0.1:1/base/api?x=y");
}

TEST_F(CurlProxyTest, AProxyThatRefusesOrIsNotThereIsSaid) {
  TunnelProxy proxy("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n");
  auto response = open("https://127.0.0.1:1", proxy.url())->call(get("/api"));
  EXPECT_EQ(code_of(response), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(response.status().message()), HasSubstr("CONNECT tunnel failed, response 407"));
  response = open("https://127.0.0.1:1", "http://127.0.0.1:1")->call(get("/api"));
  EXPECT_EQ(code_of(response), absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace paceline::kube

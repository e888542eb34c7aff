#pragma once

// An HTTP/2 server over TLS on the loopback that understands just enough (RFC 9113): it counts connections
// and requests, and answers each request, or tells the client to go away, as a test says. After GOAWAY it
// closes when the client has, or a moment later, as Go's server does after a second. A thread per connection;
// all of it is gone when the server is destroyed. Thread-safe.

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>

#include "tests/support/loopback_server.h"
#include "tests/support/test_certificates.h"

namespace paceline {

class ScriptedH2Server {
 public:
  enum class Do : std::uint8_t {
    kAnswer,        // 200, with the connection's number as its body
    kAnswerAndGo,   // likewise; then GOAWAY: no request after this one is taken
    kRefuseAndGo,   // GOAWAY: this request was not looked at
    kRefuseAndEnd,  // the same, and the connection closes at once
  };
  // A request that has come: the connection's and the request's numbers, both from 1 over the
  // server's life. Called in the connection's thread.
  using Script = std::function<Do(int connection, int request)>;

  ScriptedH2Server(const KeyPair& server, Script script);

  std::string url() const;
  int connections() const { return server_.connections(); }
  int answered() const { return answered_; }

 private:
  void serve(int fd, int number);

  const Script script_;
  const Ssl<SSL_CTX> context_;
  std::atomic<int> requests_{0}, answered_{0};
  LoopbackServer server_;  // last: its threads use the above
};

}  // namespace paceline

#pragma once

// An HTTP/1.1 server on the loopback whose answers a test scripts, byte by byte where it likes. A thread per
// connection; all of it is gone when the server is stopped or destroyed. Thread-safe.

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "tests/support/test_certificates.h"

namespace paceline {

struct ScriptedRequest {
  std::string method, target;                  // "GET", "/api?x=y"
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  int connection = 0;       // counted from 1 over the server's life
  std::string client_name;  // common name of the client's certificate
};

// One request's answer, in the connection's thread. Sending to a client that has gone returns false.
class ScriptedAnswer {
 public:
  virtual ~ScriptedAnswer() = default;
  virtual bool send(std::string_view bytes) = 0;
  // A whole answer with Content-Length; `headers` are whole lines ("Retry-After: 1\r\n").
  bool reply(int status, std::string_view body, std::string_view headers = {});
  // Waits until the client closes, or the server is stopped.
  virtual void hold() = 0;
  // Waits `time`. False: the client has gone, or the server is stopped.
  virtual bool pause(Duration time) = 0;
  // The connection is closed when the script returns.
  virtual void close() = 0;
};

struct ScriptedTls {
  KeyPair server;
  std::string client_ca_pem;  // a client must show a certificate of this authority; empty: none is asked for
};

class ScriptedHttpServer {
 public:
  using Script = std::function<void(const ScriptedRequest&, ScriptedAnswer&)>;

  explicit ScriptedHttpServer(Script script) : ScriptedHttpServer(std::move(script), nullptr) {}
  ScriptedHttpServer(Script script, ScriptedTls tls)
      : ScriptedHttpServer(std::move(script), std::make_unique<ScriptedTls>(std::move(tls))) {}
  ~ScriptedHttpServer();
  ScriptedHttpServer(const ScriptedHttpServer&) = delete;
  ScriptedHttpServer& operator=(const ScriptedHttpServer&) = delete;

  std::string url() const;  // http(s)://127.0.0.1:port
  int port() const;
  int connections() const;  // accepted so far
  int requests() const;     // read so far
  // Closes the port and every connection. start() takes the same port again.
  void stop();
  void start();

 private:
  ScriptedHttpServer(Script script, std::unique_ptr<ScriptedTls> tls);
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace paceline

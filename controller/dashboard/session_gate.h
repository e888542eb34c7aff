#pragma once

// The gate of a dashboard on the loopback device: a token that opens one session, whose cookie and word each
// request brings (sessions.h). Its viewers have all rights of the process. Thread-safe.

#include <string>
#include <utility>

#include "base/guarded.h"
#include "controller/dashboard/gate.h"
#include "controller/dashboard/sessions.h"

namespace paceline::dashboard {

class SessionGate final : public Gate {
 public:
  // `cookie`: its name; cookies are shared by all ports of a host.
  SessionGate(std::string user, std::string cookie) : user_(std::move(user)), cookie_(std::move(cookie)) {}

  // Opens one session.
  std::string new_token();

  void admit(const web::HttpRequest& request, const Need& need, Then then) override;
  void open(const std::string& token, std::function<void(Opened)> then) override;

 private:
  const std::string user_, cookie_;
  Guarded<Sessions> sessions_;
};

}  // namespace paceline::dashboard

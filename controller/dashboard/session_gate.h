#pragma once

// The gate of a dashboard on the loopback device: a token that opens one session, whose cookie and word each
// request brings (sessions.h). Its viewers have the rights of the process, which may be those of a
// kubeconfig: then they are asked for, and count for AccessCache::kKept, those of a stream for as long as it
// lasts. A stream is a use of its session, and ends with it. Thread-safe; it outlives its streams.

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/guarded.h"
#include "controller/dashboard/access_cache.h"
#include "controller/dashboard/actions.h"
#include "controller/dashboard/gate.h"
#include "controller/dashboard/sessions.h"
#include "controller/dashboard/workers.h"

namespace paceline::dashboard {

// Tells what the process may do to a job. May block.
using AskRights = std::function<Rights(const std::string& ns, const std::string& name)>;

class SessionGate final : public Gate {
 public:
  // `cookie`: its name; cookies are shared by all ports of a host. `rights`: null: all.
  SessionGate(std::string user, std::string cookie, AskRights rights, const Clock& clock);

  // Opens one session.
  std::string new_token();

  void admit(const web::HttpRequest& request, const Need& need, Then then) override;
  void open(const web::HttpRequest& request, const std::string& token,
            std::function<void(Opened)> then) override;
  void close() override { workers_.reset(); }

 private:
  class SessionSight;

  const std::string user_, cookie_;
  const AskRights ask_rights_;
  const Clock& clock_;
  Guarded<Sessions> sessions_;
  struct Known {
    Rights rights;
    TimePoint until{};
  };
  Guarded<NewestValues<Known>> known_{NewestValues<Known>(AccessCache::kMost)};
  std::unique_ptr<Workers> workers_;  // where rights are asked for
};

}  // namespace paceline::dashboard

#pragma once

// A parameter server's whole life: it waits for views, serves the workers of each, and ends when the job has.
// It has neither model nor data.
//
// run() is called once, by the process's main thread, which is the membership's; the server has a thread of
// its own. What it was given outlives it. A server that is evicted from a job that is not finished serves on
// until the workers have gone, because worker 0 may still be saving what it holds: until nothing of it was
// taken for kLastServiceLimit. So does one that is asked to stop, for kStoppedServiceLimit; where the workers
// do not go by themselves within the patience of a stop (nobody asked them), its goodbye tells the
// coordinator, which ends the job.

#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "base/log.h"
#include "proto/paceline/v1/coordinator.pb.h"
#include "runtime/collective/fabric.h"
#include "runtime/member/membership.h"
#include "runtime/pserver/server.h"
#include "runtime/trainer/outcome.h"
#include "runtime/trainer/stop_request.h"

namespace paceline::trainer {

// pserver::Server::connect(), or a test's.
using ConnectServer = std::function<absl::StatusOr<std::unique_ptr<pserver::Server>>(
    collective::Fabric& fabric, const collective::Group& group, const pserver::ServerOptions& options,
    const Clock& clock, Deadline deadline)>;

struct ServerParts {
  member::Membership& membership;
  collective::Fabric& fabric;
  const Clock& clock;
  const Logger& logger;
  StopRequest& stop;
  ConnectServer connect;
};

class ServerMember {
 public:
  explicit ServerMember(ServerParts parts);
  ~ServerMember();
  ServerMember(const ServerMember&) = delete;
  ServerMember& operator=(const ServerMember&) = delete;

  Outcome run();

 private:
  // What wakes the main thread.
  struct Events {
    bool served = false;   // the server's run() has returned
    absl::Status result;   // its
    bool ended = false;    // the membership is over
    bool expired = false;  // so is patience with a stop
  };
  absl::StatusOr<v1::View> next_view(Duration limit);
  absl::Status serve(const v1::View& view);
  absl::Status watch(pserver::Server& server);
  Outcome end(absl::Status error);
  Outcome leave(v1::Leaving::Outcome how, const std::string& reason,
                v1::Leaving::Cause cause = v1::Leaving::OTHER);
  void send_goodbye(v1::Leaving::Outcome how, const std::string& reason,
                    v1::Leaving::Cause cause = v1::Leaving::OTHER);
  TimePoint now() const { return parts_.clock.now(); }

  const ServerParts parts_;
  const v1::TrainingSpec& spec_;
  Guarded<Events> events_;
  Generation generation_;
  bool said_goodbye_ = false;
};

// What the servers of a view are told; INVALID_ARGUMENT: the view has no workers.
absl::StatusOr<pserver::ServerOptions> server_options(const v1::TrainingSpec& spec, const v1::View& view);

}  // namespace paceline::trainer

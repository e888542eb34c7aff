#pragma once

// The gRPC shell around CoordinatorCore: one server, several jobs, one Attach stream per member
// (docs/protocol.md, Control).
//
// Threads: everything here may be called from any thread. gRPC's own few threads read streams, one timer
// thread ticks the jobs for which time has an effect (Job::due()); each job's core runs under that job's
// mutex, and sends and observer calls happen outside of it, in order. Finding a stream's job costs the same
// however many there are. Bounds: kMaxSessions streams, kMaxQueuedMessages per stream, 4 MiB per message, a
// stream has `hello_timeout` to say Hello. Errors on a stream: UNAVAILABLE (no job has this token, and the
// job that it names is told: Report::refused; or this replica does not lead: where it knows who does, its
// address is the trailing metadata `paceline-leader`), RESOURCE_EXHAUSTED (too many streams),
// DEADLINE_EXCEEDED (no Hello), INVALID_ARGUMENT (the first message isn't a Hello); everything later is an
// Evict with its reason.

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "controller/coordinator/job.h"

namespace paceline::coordinator {

inline constexpr std::size_t kMaxSessions = 16'384;  // 1,000 jobs of 8 members, and those who come back
inline constexpr std::size_t kMaxQueuedMessages = 64;
inline constexpr int kMaxMessageBytes = 4 << 20;

struct ServerOptions {
  std::string listen =
      "127.0.0.1:0";  // host:port (0: the system's choice), unix:/path, or unix-abstract:name
  Duration tick = std::chrono::milliseconds(50);
  Duration hello_timeout = std::chrono::seconds(5);
  bool serves = true;  // false: as after redirect("")
  // TLS (1.2 or later) with the certificate in these files, PEM, which are read again when they change; until
  // they are there nobody gets in. Empty: without TLS.
  std::string certificate_file, key_file;
};

class Server {
 public:
  // Listens at once. INVALID_ARGUMENT or UNAVAILABLE: the address, with the system's reason.
  static absl::StatusOr<std::unique_ptr<Server>> start(const ServerOptions& options, const Clock& clock);
  virtual ~Server() = default;  // shutdown(); jobs must be closed

  virtual const std::string& address() const = 0;  // what PACELINE_COORDINATOR says: "127.0.0.1:40123"
  // The last copy that goes closes the job. INVALID_ARGUMENT (what is wrong in the config), ALREADY_EXISTS
  // (job or token).
  virtual absl::StatusOr<std::shared_ptr<Job>> add_job(JobConfig config) = 0;
  // Streams are taken from now on.
  virtual void serve() = 0;
  // They are not, but told to try `leader` (host:port; empty: nobody knows). Those that are open stay.
  virtual void redirect(std::string leader) = 0;
  // Ends all streams; returns within about a second.
  virtual void shutdown() = 0;
};

}  // namespace paceline::coordinator

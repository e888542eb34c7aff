#pragma once

// The gate of a dashboard: who asks, and whether he may. A machine's own knows sessions (session_gate.h), a
// cluster's bearer tokens and the API server's word on rights (token_gate.h). Thread-safe.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "controller/cluster/kube/json.h"
#include "controller/dashboard/actions.h"
#include "controller/dashboard/guard.h"
#include "controller/dashboard/job_table.h"
#include "controller/dashboard/place.h"
#include "controller/web/http_message.h"

namespace paceline::dashboard {

// The right that a request needs, beside being somebody's.
struct Need {
  std::string verb;      // on one job: get, update, delete; empty: none
  std::string ns, name;  // of that job
  bool lists = false;    // whose jobs the viewer may list is asked for
  bool rights = false;   // what he may do to the job, too; that he may nothing is no refusal
  bool of_stream = false;
  bool operator==(const Need&) const = default;
};

// Tells a stream, which outlives its request, what its viewer may see now.
class Sight {
 public:
  virtual ~Sight() = default;
  struct Seen {
    bool over = false;  // he may see nothing any more
    Namespaces namespaces = nullptr;
    Rights rights = {};  // where they were asked for
  };
  // Never blocks.
  virtual Seen look(TimePoint now) = 0;
};

struct Admission {
  std::optional<Refusal> refusal;
  Viewer viewer;                 // known where he is somebody, also when he is refused
  std::shared_ptr<Sight> sight;  // null: he sees all, for good
};

class Gate {
 public:
  virtual ~Gate() = default;

  // Calls `then` once: now, or later from another thread.
  using Then = std::function<void(Admission)>;
  virtual void admit(const web::HttpRequest& request, const Need& need, Then then) = 0;

  // POST /session with this token. `told` and `cookie`: what the answer tells beside the session.
  struct Opened {
    Admission admission;
    kube::Json told = kube::Json::object();
    std::string cookie;
  };
  virtual void open(const web::HttpRequest& request, const std::string& token,
                    std::function<void(Opened)> then) = 0;

  // Asks no more: returns when no `then` is under way, and none is called later.
  virtual void close() {}
};

}  // namespace paceline::dashboard

#pragma once

// An API server in memory, behind the Transport interface: no network, no time of its own. It keeps objects
// of any kind as JSON, with uids, resource versions, generations, label and field selectors, pages with
// continue tokens, watches with bookmarks, preconditions, graceful deletion of pods, server-side apply (as a
// merge; of statuses the conditions are a map by type, and all else is the applier's) and status
// sub-resources. A test breaks it: any request may be answered otherwise, any answer cut at any byte.
//
// Thread-safe.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "controller/cluster/kube/json.h"
#include "controller/cluster/kube/transport.h"

namespace paceline {

class FakeApiServer final : public kube::Transport {
 public:
  using Json = kube::Json;

  // ---- what a test does to its objects; `plural` is "pods", "secrets", ...

  Json create(const std::string& plural, const std::string& ns, Json object);
  // A change by somebody else (kubelet, scheduler, user). False where there is none.
  bool change(const std::string& plural, const std::string& ns, const std::string& name,
              const std::function<void(Json&)>& change);
  bool erase(const std::string& plural, const std::string& ns, const std::string& name);
  std::optional<Json> find(const std::string& plural, const std::string& ns, const std::string& name) const;
  std::vector<Json> all(const std::string& plural) const;
  // Deleted pods end at once (the default), or stay, with a deletionTimestamp, until they are erased.
  void end_deleted_at_once(bool at_once);
  void set_log(const std::string& ns, const std::string& pod, std::string log);

  // ---- faults

  struct Fault {
    std::optional<kube::Response> answer;      // instead of what would have come
    std::optional<absl::Status> broken;        // no answer at all
    std::optional<std::size_t> cut_after;      // the connection breaks after so many bytes of the body
    std::optional<std::string> garbage_after;  // with cut_after: these bytes follow instead of a break
    bool expired_by_event = false;             // an expired watch says so by an ERROR event, not by 410
  };
  // Asked at each request, before it is looked at; an empty Fault changes nothing.
  using Faults = std::function<Fault(const kube::Request&)>;
  void set_faults(Faults faults);
  // Ends the watches that are open or have been asked for: in order, or as a broken connection.
  void end_watches(bool in_order);
  // Every open watch gets a bookmark.
  void send_bookmarks();
  // Forgets which changes led here, and the continue tokens: older resource versions are 410 from now on.
  void compact();
  // As if restored from a back-up: objects stay, their resource versions begin anew after `version`.
  void restart(std::uint64_t version);
  // Requests so far whose "GET /path?query" contains this.
  int requests(const std::string& part) const;

  // ---- Transport

  absl::StatusOr<kube::Response> call(const kube::Request& request) override;
  absl::StatusOr<kube::Response> stream(const kube::Request& request,
                                        const std::function<bool(std::string_view)>& on_bytes,
                                        std::stop_token stop) override;

 private:
  struct Target;  // what a path names
  struct Change {
    std::uint64_t version;
    std::string plural, type;
    Json object, before;  // before: null where there was none
  };
  using Objects = std::map<std::string, Json>;  // by "namespace/name"

  // A request as it came. A watch that came before set_faults() is ended by the end_watches() that follows.
  struct Asked {
    Fault fault;
    std::uint64_t ended = 0;
  };
  Asked asked(const kube::Request& request);
  kube::Response answer(const kube::Request& request);
  kube::Response list(const Target& target);
  kube::Response create_from(const Target& target, Json object);
  kube::Response patch(const Target& target, const kube::Request& request);
  kube::Response remove(const Target& target, const Json& options);
  Json applied_status(const std::string& uid, const Json& status, Json applied);
  static Json event_of(const Change& change, const Target& target);
  Json store(const std::string& plural, Json object, const char* type);
  void forget(const std::string& plural, const std::string& key);
  absl::StatusOr<kube::Response> watch(const Target& target, const Asked& asked,
                                       const std::function<bool(std::string_view)>& on_bytes,
                                       std::stop_token stop);

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::map<std::string, Objects> objects_;  // by plural
  std::deque<Change> history_;
  std::map<std::string, Json::array_t> pages_;  // what is left, by continue token
  std::map<std::string, std::string> logs_;
  std::map<std::string, std::set<std::string>> owned_;  // by uid: the types of conditions that were applied
  std::vector<std::string> requests_;
  Faults faults_;
  std::uint64_t version_ = 1000, oldest_ = 1000, uids_ = 0, tokens_ = 0;
  std::uint64_t ended_ = 0, bookmarks_ = 0;  // how often watches were ended, bookmarked
  bool ended_in_order_ = true, at_once_ = true;
};

}  // namespace paceline

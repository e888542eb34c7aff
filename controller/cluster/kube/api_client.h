#pragma once

// The API server's verbs, over any Transport. Answers that are no 2xx become statuses (api_error.h); garbage
// instead of JSON is DATA_LOSS; both name the request.
//
// A request that the server refuses for its load (429, or 5xx with Retry-After) is repeated when it says,
// with jitter, at most kMaxTries times and while that fits into the call's limit; then it is the caller's
// error, with its retry_after(). Nothing else is repeated, and nothing is held back unasked. The
// limit is of all tries together; of a page of a list, whose bytes may take their time, it is silence, and
// two minutes for all of it.
//
// Thread-safe: any number of calls at once. Every wait ends with CANCELLED when `stop` is requested.

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "base/rng.h"
#include "controller/cluster/kube/json.h"
#include "controller/cluster/kube/pause.h"
#include "controller/cluster/kube/resources.h"
#include "controller/cluster/kube/transport.h"

namespace paceline::kube {

inline constexpr int kMaxTries = 6;
inline constexpr Duration kCallLimit = std::chrono::seconds(30);
// Of a page of a list; the API server itself gives up after 60 s.
inline constexpr Duration kPageLimit = std::chrono::minutes(2);
inline constexpr std::size_t kMaxListBytes = 64u << 20;  // of one page
inline constexpr char kFieldManager[] = "paceline-controller";

// What to list or to watch.
struct Scope {
  Resource resource;
  std::string ns;  // empty: all namespaces
  std::string label_selector;
  std::string field_selector = {};
};

struct Page {
  Json::array_t items;  // without apiVersion and kind, as the server sends them
  std::string resource_version;
  std::string continue_token;  // empty: the last page
};

struct DeleteOptions {
  std::string uid;                // empty: any; another one's is ABORTED
  std::optional<Duration> grace;  // rounded up to seconds; zero doesn't wait for the kubelet
  std::string propagation = "Background";
};

// How to write: whose fields they are, and whether it is only tried.
struct WriteOptions {
  std::string field_manager = kFieldManager;
  bool force = true;     // apply: what others own becomes ours; false: that is ABORTED
  bool dry_run = false;  // the server checks, and keeps nothing
};

struct LogOptions {
  std::string container;          // empty: the only one
  std::optional<int> lines;       // the last ones; absent: all
  std::optional<Duration> since;  // only the lines of so long; rounded up to seconds
  std::optional<WallTime> from;   // only lines from this second on; at most one of both
  bool follow = false, timestamps = false;
};

class ApiClient {
 public:
  // The references must outlive it.
  ApiClient(Transport& transport, const Clock& clock, std::uint64_t seed, std::stop_token stop = {},
            Pause pause = real_pause, Duration call_limit = kCallLimit);

  // `within`: all tries together, where that is less than the client's own limit.
  absl::StatusOr<Json> get(const Resource& resource, std::string_view ns, std::string_view name,
                           Duration within = kCallLimit);
  // Fields that the API server does not know: left out by it, or INVALID_ARGUMENT with their names.
  enum class Unknown : std::uint8_t { kDrop, kRefuse };
  absl::StatusOr<Json> create(const Resource& resource, std::string_view ns, const Json& object,
                              Unknown unknown = Unknown::kDrop);
  // The object as it ends, or a Status.
  absl::StatusOr<Json> remove(const Resource& resource, std::string_view ns, std::string_view name,
                              const DeleteOptions& options);
  // Server-side apply. With metadata.uid in `object`, another object of that name is ABORTED instead of
  // changed.
  absl::StatusOr<Json> apply(const Resource& resource, std::string_view ns, std::string_view name,
                             std::string_view subresource, const Json& object,
                             const WriteOptions& options = {});
  // JSON merge patch. With metadata.resourceVersion in `patch`, an object that has changed since is ABORTED.
  absl::StatusOr<Json> merge_patch(const Resource& resource, std::string_view ns, std::string_view name,
                                   std::string_view subresource, const Json& patch,
                                   const WriteOptions& options = {});
  // The last lines of a container's log, at most `limit_bytes` of them; the first container's where
  // `container` is empty. The API server asks the pod's node, which may not answer: all of it takes no longer
  // than `limit`.
  absl::StatusOr<std::string> log(std::string_view ns, std::string_view pod, std::string_view container,
                                  int lines, std::size_t limit_bytes, Duration limit = kCallLimit);

  // A container's log in pieces as they come, until it ends (OK), `on_bytes` returns false (OK), or an error.
  // Silence of kCallLimit, or of 5 minutes with options.follow, is DEADLINE_EXCEEDED. Never repeated here.
  absl::Status stream_log(std::string_view ns, std::string_view pod, const LogOptions& options,
                          const std::function<bool(std::string_view)>& on_bytes, std::stop_token stop);

  // One page. OUT_OF_RANGE: the continue token is too old; RESOURCE_EXHAUSTED: more than kMaxListBytes.
  // `within`: all tries together, with their answers, where that is less than the client's own limits.
  absl::StatusOr<Page> list(const Scope& scope, int limit, std::string_view continue_token,
                            std::stop_token stop, Duration within = kPageLimit);
  // Bytes of a watch stream (watch_decoder.h) with bookmarks, until the server ends it (OK), `on_bytes`
  // returns false (OK), or an error. Never repeated here.
  absl::Status watch(const Scope& scope, std::string_view resource_version, Duration timeout,
                     const std::function<bool(std::string_view)>& on_bytes, std::stop_token stop);

 private:
  using Exchange = std::function<absl::StatusOr<Response>(const Request&)>;
  absl::StatusOr<Response> send(Request request, const Exchange& exchange, std::stop_token stop,
                                Duration limit);
  absl::StatusOr<Json> send_json(Request request, Duration limit = kCallLimit);
  Duration jittered(Duration wait);

  Transport& transport_;
  const Clock& clock_;
  const std::stop_token stop_;
  const Pause pause_;
  const Duration call_limit_;
  Guarded<Rng> rng_;
};

}  // namespace paceline::kube

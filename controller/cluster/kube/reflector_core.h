#pragma once

// How a copy of the server's objects is kept, after client-go's tools/cache Reflector: list in pages, watch
// from the list's resource version, watch again where the last watch ended, list again when the server says
// that it has forgotten that version. Decides; informer.h acts. Pure; a value; one thread at a time.
//
//   List* -> Watch -> Watch -> ...        next() is what to do now; one of the other calls says how it went
//     ^        | 410, or failed often
//     +--Wait--+
//
// After an error, or a watch that ended at once without an event, it waits: 0.8 s, doubled up to 30 s, with
// jitter. What resets that is an event or bookmark, or a watch that lasted; never a list alone, so that a
// server that lists but does not watch is not stormed.
//
// A page whose token has expired begins the list again with larger pages; one that is too large, with smaller
// ones. Resource versions are compared only to notice that a server's are older than ours: it was restored
// from a back-up, and everything is listed again.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/rng.h"
#include "controller/cluster/kube/watch_decoder.h"

namespace paceline::kube {

struct ReflectorLimits {
  Duration first_wait = std::chrono::milliseconds(800);
  Duration longest_wait = std::chrono::seconds(30);
  Duration longest_asked = std::chrono::minutes(10);  // by Retry-After
  int page = 500;                                     // objects
  int largest_page = 16'000;
  int pages = 100'000;                                // of one list
  Duration shortest_watch = std::chrono::minutes(5);  // asked for: between this and twice this
  Duration lasting_watch = std::chrono::seconds(5);   // one without an event that lasts so long went well
  int watch_failures = 5;                             // in a row, then list again
};

class ReflectorCore {
 public:
  ReflectorCore(ReflectorLimits limits, std::uint64_t seed)
      : limits_(limits), page_(limits.page), rng_(seed, 1) {}

  struct List {
    int limit = 0;
    std::string continue_token;  // empty: the first page
    std::uint64_t round = 0;     // the same for all pages of one list
  };
  struct Watch {
    std::string resource_version;
    Duration timeout{};
  };
  struct Wait {
    Duration time{};
    std::string reason;
  };
  using Action = std::variant<List, Watch, Wait>;
  Action next();

  // True: that was the last page. What the server has is what this round brought, and nothing else.
  bool page_read(std::string_view resource_version, std::string_view continue_token);
  void list_failed(const absl::Status& error);

  // Of ADDED, MODIFIED, DELETED, BOOKMARK; false: end this watch.
  bool event_read(std::string_view resource_version);
  // Of an ERROR event; the watch is over.
  void error_read(const absl::Status& error);
  // OK where the server, or a false from event_read, ended it.
  void watch_ended(const absl::Status& error, Duration lasted);

  // At once, instead of whatever is next.
  void list_again();

 private:
  void fail(std::string_view what, const absl::Status& error);

  ReflectorLimits limits_;
  int page_;
  Rng rng_;
  bool listing_ = true;
  std::uint64_t round_ = 1;
  int pages_ = 0;  // of this list
  std::string continue_token_, resource_version_;
  int failures_ = 0;                      // in a row: doubles the wait
  int watch_failures_ = 0;                // since the last list
  bool progress_ = false, over_ = false;  // of this watch: it brought something; its end is dealt with
  Duration wait_{};                       // before the next action; zero: none
  std::string reason_;
};

// As integers. False where either is none.
bool is_older(std::string_view resource_version, std::string_view than);

}  // namespace paceline::kube

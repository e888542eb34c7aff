#pragma once

// The board that all viewers of a dashboard see: the table of jobs, and which jobs are looked at. One thread
// feeds it, the server's and its workers read it. Thread-safe; no call blocks for long. Texts for several
// readers are made once.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/guarded.h"
#include "base/ids.h"
#include "controller/cluster/kube/json.h"
#include "controller/dashboard/actions.h"
#include "controller/dashboard/job_row.h"
#include "controller/dashboard/job_table.h"

namespace paceline::dashboard {

class Board {
 public:
  static constexpr Duration kLook = std::chrono::seconds(30);  // a look at a job counts for so long
  static constexpr std::size_t kLooks = 64;                    // jobs that are looked at, at most
  static constexpr std::size_t kTexts = 64;                    // of jobs that are kept for several readers
  static constexpr Duration kEventInterval = std::chrono::milliseconds(450);   // between two of a viewer's
  static constexpr Duration kStreamInterval = std::chrono::milliseconds(100);  // between two of any viewer's

  // Advice that only a job's place can give; pure functions of its object.
  struct Advice {
    std::function<std::string(Action action, const kube::Json& object)> why_not = dashboard::why_not;
    std::function<std::vector<std::string>(const kube::Json& object)> hints = pod_hints;  // what to do
  };
  explicit Board(const Clock& clock) : Board(clock, Advice{}) {}
  Board(const Clock& clock, Advice advice) : clock_(clock), advice_(std::move(advice)) {}

  // Feeding: `on_news` is called, by that thread, when readers may have something new. It may be called once
  // more while it is replaced.
  void on_news(std::function<void()> on_news) { seen_.lock()->on_news = std::move(on_news); }
  struct Changes {
    std::vector<kube::Json> objects;
    std::vector<std::string> removed;  // key_of()
    std::optional<std::vector<std::string>> left_out;
  };
  void apply(const Changes& changes);
  struct Series {
    std::uint64_t version = 0;  // JobSeries::version()
    Step newest = -1;
    bool operator==(const Series&) const = default;
  };
  // The series of a job that is looked at has changed.
  void note_series(const std::string& key, const Series& series);
  std::vector<std::string> looked_at() const;  // the newest look first

  // A stream of events begins or ends: the more there are, the longer each waits between two events, so that
  // any number of viewers costs about the same.
  void count_stream(int change) { streams_ += change; }
  Duration event_interval() const {
    return hurries_ ? kEventInterval : std::max<Duration>(kEventInterval, streams_.load() * kStreamInterval);
  }
  // The end is near: all hear of it soon, whatever that costs.
  void hurry() { hurries_ = true; }

  // Reading.
  std::string list_json(const Namespaces& namespaces = nullptr) const;     // of those alone
  std::set<std::string> namespaces() const;                                // that have jobs
  std::shared_ptr<const kube::Json> object(const std::string& key) const;  // null: there is no such job
  // For a viewer with these rights; null: there is no such job. The text is made without the lock, once for
  // all with the same rights.
  std::shared_ptr<const std::string> job_json(const std::string& key, const Rights& rights = {}) const;
  std::string why_not(Action action, const kube::Json& object) const {
    return advice_.why_not(action, object);
  }
  void look(const std::string& key);

  struct Text {
    std::uint64_t version = 0;
    std::shared_ptr<const std::string> json;  // null: nothing new
    bool gone = false;                        // the job is
  };
  // For a reader who knows the version `since` (0: everything), and sees these namespaces.
  Text jobs_since(std::uint64_t since, const Namespaces& namespaces = nullptr) const;
  // A job that is gone: {"version","removed":true}.
  Text job_since(const std::string& key, std::uint64_t since, const Rights& rights = {}) const;
  Series series_of(const std::string& key) const;

 private:
  struct Seen {
    std::function<void()> on_news;
    JobTable table;
    std::map<std::string, TimePoint> looks;
    std::map<std::string, Series> series;  // of those
    // The newest delta: most readers know the same version.
    std::uint64_t delta_since = 0, delta_version = 0;
    std::shared_ptr<const std::string> delta;
    // The newest texts of jobs that are looked at.
    struct JobText {
      std::uint64_t changed = 0;
      std::shared_ptr<const std::string> json;
    };
    std::map<std::pair<std::string, Rights>, JobText> job_texts;
  };
  std::shared_ptr<const std::string> text_of(const std::string& key, const JobTable::Job& job,
                                             const Rights& rights) const;

  void tell() const;

  const Clock& clock_;
  const Advice advice_;
  std::atomic<int> streams_ = 0;
  std::atomic<bool> hurries_ = false;
  mutable Guarded<Seen> seen_;
};

}  // namespace paceline::dashboard

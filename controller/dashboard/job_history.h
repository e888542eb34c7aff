#pragma once

// The history of an API server's jobs: writes jobs and their series into a HistoryStore as they change, and
// reads there what memory no longer has: the series from before this process, and jobs that are deleted.
//
// A thread of its own writes, every kInterval and soon after a deletion, and once more at the end. The store
// is one process's: another replica that has the file writes it, also what is deleted meanwhile, and this one
// tries again. A file that was removed or replaced is opened anew. An error costs history alone: it is logged
// once until it passes, told to `on_error` each time, and to viewers; a damaged file is put aside, and a new
// one begun. Bounded as the store, and kMostGone deleted jobs that wait to be written (further ones are
// lost). Thread-safe; readers may wait for the disk.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "base/log.h"
#include "controller/cluster/kube/json.h"
#include "controller/dashboard/job_samples.h"
#include "controller/dashboard/job_series.h"
#include "controller/history/history_store.h"

namespace paceline::dashboard {

struct HistoryOptions {
  std::string path;
  history::Limits limits;
  std::string ns;  // whose jobs are known; empty: all namespaces'
  // "damaged", "full", "held" (by another replica), "failed"
  std::function<void(std::string_view reason)> on_error = nullptr;
};

class JobHistory {
 public:
  static constexpr Duration kInterval = std::chrono::seconds(60);
  static constexpr Duration kLeastInterval = std::chrono::seconds(1);
  static constexpr std::size_t kMostGone = 1024;
  static constexpr Duration kSettles = std::chrono::hours(1);  // a clock that is new, or has jumped

  // The references outlive it. Nothing is opened yet.
  JobHistory(HistoryOptions options, const JobSamples& samples, const Clock& clock, Logger log);
  ~JobHistory();  // writes what has changed, where it was started

  void start();
  // Writes what has changed, as the thread does now and then. False: the store can't be had, or written.
  bool pass();

  // Feeding, by one thread.
  void note(const std::string& uid, std::shared_ptr<const kube::Json> object);
  void note_deleted(const std::string& uid);
  void note_listed();  // all jobs that there are have been noted

  // Reading. UNAVAILABLE: there is no store, with why.
  absl::StatusOr<std::vector<history::Record>> deleted(const std::set<std::string>* namespaces,
                                                       std::size_t most) const;
  absl::StatusOr<history::Record> find_deleted(const std::string& ns, const std::string& name,
                                               const std::string& uid) const;
  // The series of a job that is there, or deleted: as it is kept, and as it was sampled since.
  JobSeries series(const std::string& uid) const;
  std::set<std::string> namespaces() const;  // that have deleted jobs; never blocks
  // {"kept": whether there is a store, "why": what is wrong}
  kube::Json about() const;

 private:
  using Store = std::shared_ptr<history::HistoryStore>;
  struct Job {
    std::shared_ptr<const kube::Json> object;
    bool changed = true;     // since it was written
    std::uint64_t kept = 0;  // the store has the samples before this one
    std::optional<WallTime> deleted;
    StatusSamples last;  // of one that is deleted
  };
  struct Jobs {
    std::map<std::string, Job> known;  // by uid
    std::size_t gone = 0;              // of them are deleted
    bool listed = false;
  };
  struct State {
    Store store;
    absl::Status trouble = absl::UnavailableError("it is not open yet");
    std::set<std::string> namespaces;
    bool tried = false, absent_marked = false;  // whether there was a pass; in this store
  };
  void run(const std::stop_token& stop);
  absl::StatusOr<Store> open_store();
  void drop_deleted();
  absl::StatusOr<Store> store() const;
  absl::Status write(history::HistoryStore& store);
  absl::Status write_job(history::HistoryStore& store, const std::string& uid, const Job& job);
  absl::Status mark_absent(history::HistoryStore& store);
  void note_result(const absl::Status& status);
  bool is_clock_settled();
  // DATA_LOSS: the file is damaged. Bytes that are no series are an empty one.
  static absl::StatusOr<JobSeries> kept_series(history::HistoryStore& store, const std::string& uid);
  void change(const std::string& uid, const std::function<void(Job&)>& change);

  const HistoryOptions options_;
  const JobSamples& samples_;
  const Clock& clock_;
  const Logger log_;
  mutable Guarded<Jobs> jobs_;
  mutable Guarded<State> state_;
  std::optional<Duration> clock_offset_;  // pass() alone, as the next one
  TimePoint clock_settles_{};
  std::jthread thread_;
};

}  // namespace paceline::dashboard

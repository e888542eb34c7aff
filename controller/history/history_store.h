#pragma once

// Jobs that go on or are over, as they were last seen, and their steps' series: kept in one SQLite file, so
// that they outlive the controller and the job's object. The file's write-ahead log makes each record whole
// or absent after a crash (https://sqlite.org/wal.html).
//
// Bounded: beyond Limits::bytes the records go whose jobs have been over for the longest, then those that
// changed the longest ago. What is lost is history: no caller waits for more than a write, and an error
// leaves what is in the file as it was. A damaged file is put aside as FILE.damaged, and a new one begun. One
// process has the file at a time. Thread-safe.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "controller/history/sqlite.h"

namespace paceline::history {

struct Record {
  std::string uid, ns, name;
  WallTime created{}, changed{};  // milliseconds count
  bool over = false;              // succeeded, failed, or deleted
  std::optional<WallTime> deleted;
  std::string object;  // the TrainingJob, as JSON
};

struct Limits {
  std::int64_t bytes = std::int64_t{256} << 20;  // of the file
  Duration age = std::chrono::hours(24 * 90);    // of a record since its job was over
};

class HistoryStore {
 public:
  // The remark is empty, or says where a damaged file is now, and why.
  struct Opened {
    std::unique_ptr<HistoryStore> store;
    std::string remark;
  };
  // FAILED_PRECONDITION: the file is of a later release. UNAVAILABLE: another process has it. Others: it
  // can't be made or read.
  static absl::StatusOr<Opened> open(const std::string& path, const Limits& limits);

  // The record of that uid, in place of the one before; its series, where given, likewise. A record that is
  // too large for the file by itself is RESOURCE_EXHAUSTED. DATA_LOSS: open the store anew.
  absl::Status put(const Record& record, std::optional<std::string_view> series);

  // The newest job first; `ns` empty: of all namespaces.
  absl::StatusOr<std::vector<Record>> list(const std::string& ns);
  // NOT_FOUND: there is none.
  absl::StatusOr<Record> find(const std::string& uid);
  absl::StatusOr<std::string> series(const std::string& uid);  // empty: none was put

  // Removes what is too old. put() sees to the bytes by itself.
  absl::Status forget(WallTime now);

 private:
  HistoryStore(Database database, const Limits& limits) : limits_(limits), database_(std::move(database)) {}
  static absl::StatusOr<Database> begin(const std::string& path, const Limits& limits);

  const Limits limits_;
  std::mutex mutex_;  // held while the file is read or written, which Guarded is not for
  Database database_;
};

}  // namespace paceline::history

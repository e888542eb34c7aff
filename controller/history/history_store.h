#pragma once

// Jobs that go on or are over, as they were last seen, and their steps' series: kept in one SQLite file, so
// that they outlive the controller and the job's object. The file's write-ahead log makes each record whole
// or absent after a crash (https://sqlite.org/wal.html).
//
// Bounded: beyond Limits::bytes the records go whose jobs have been over for the longest, then those that
// changed the longest ago. A disk that others have filled costs no record: the write fails. What is lost is
// history: no caller waits for more than a write, and an error leaves what is in the file as it was. A
// damaged file is put aside as FILE.damaged, and a new one begun. One process has the file at a time.
// Thread-safe.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "controller/history/record.h"
#include "controller/history/sqlite.h"

namespace paceline::history {

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

  // Puts a file that is damaged aside; the next open() begins a new one.
  static absl::Status set_aside(const std::string& path);

  // The file was removed, or is another one by now: this store keeps nothing.
  bool has_moved();

  // The record of that uid, in place of the one before; its series, where given, likewise.
  // RESOURCE_EXHAUSTED: the disk is full, or the record is larger than a quarter of the file may be.
  // DATA_LOSS: the file is damaged.
  absl::Status put(const Record& record, std::optional<std::string_view> series);

  // Records without their objects: of jobs that are deleted, the latest deletion first, or of all others.
  // `namespaces` null: of all.
  enum class Which : bool { kDeleted, kOthers };
  absl::StatusOr<std::vector<Record>> list(Which which, const std::set<std::string>* namespaces,
                                           std::size_t most = SIZE_MAX);
  // One that is deleted; `uid` empty: the newest of that name. NOT_FOUND: there is none.
  absl::StatusOr<Record> find_deleted(const std::string& ns, const std::string& name, const std::string& uid);
  absl::StatusOr<std::string> series(const std::string& uid);  // empty: none was put
  absl::StatusOr<std::set<std::string>> namespaces();          // of the deleted ones
  absl::Status mark_deleted(const std::string& uid, WallTime now);

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

#include "controller/history/history_store.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/status.h"
#include "base/text.h"

namespace paceline::history {

namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kPageBytes = 4096;
constexpr std::int64_t kLogPages = 1000;  // of the write-ahead log before they go into the file
constexpr std::int64_t kTreePages = 64;   // that a record may need beside its bytes
constexpr const char* kAside = ".damaged";

constexpr const char* kTables = R"(
  CREATE TABLE jobs(uid TEXT PRIMARY KEY, namespace TEXT NOT NULL, name TEXT NOT NULL, created INTEGER NOT NULL,
                    changed INTEGER NOT NULL, over INTEGER NOT NULL, deleted INTEGER, row TEXT NOT NULL,
                    object TEXT NOT NULL, series BLOB);
  CREATE INDEX by_name ON jobs(namespace, name, created);
  CREATE INDEX by_change ON jobs(over, changed);
  PRAGMA user_version = 1;)";
constexpr const char* kIndex = R"(
  CREATE INDEX IF NOT EXISTS by_deletion ON jobs(deleted DESC, created DESC, uid, namespace))";
constexpr const char* kColumnNames = "uid,namespace,name,created,changed,over,deleted,row,object,series";
constexpr const char* kColumns = "SELECT uid, namespace, name, created, changed, over, deleted, row, ";

std::int64_t milliseconds(WallTime time) {
  return time.time_since_epoch() / std::chrono::milliseconds(1);
}

WallTime wall_time(std::int64_t milliseconds) {
  return WallTime(std::chrono::milliseconds(milliseconds));
}

Record record_of(const Statement& row) {
  Record record{.uid = row.text_at(0),
                .ns = row.text_at(1),
                .name = row.text_at(2),
                .created = wall_time(row.number_at(3)),
                .changed = wall_time(row.number_at(4)),
                .over = row.number_at(5) != 0,
                .deleted = std::nullopt,
                .row = row.text_at(7),
                .object = row.text_at(8)};
  if (!row.is_null_at(6)) record.deleted = wall_time(row.number_at(6));
  return record;
}

absl::Status write(Database& database, const Record& record, std::optional<std::string_view> series) {
  Statement statement = database.prepare(
      series ? "INSERT INTO jobs VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT(uid) DO UPDATE "
               "SET changed = ?5, over = ?6, deleted = ?7, row = ?8, object = ?9, series = ?10"
             : "INSERT INTO jobs VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, NULL) ON CONFLICT(uid) DO UPDATE "
               "SET changed = ?5, over = ?6, deleted = ?7, row = ?8, object = ?9");
  statement.text(record.uid).text(record.ns).text(record.name).number(milliseconds(record.created));
  statement.number(milliseconds(record.changed)).number(std::int64_t{record.over});
  statement.number(record.deleted ? std::optional(milliseconds(*record.deleted)) : std::nullopt);
  statement.text(record.row).text(record.object);
  if (series) statement.bytes(*series);
  return statement.run();
}

// False: there is no other record.
absl::StatusOr<bool> drop_oldest(Database& database, const std::string& but) {
  for (const bool over : {true, false}) {
    PL_RETURN_IF_ERROR(
        database
            .prepare("DELETE FROM jobs WHERE uid = (SELECT uid FROM jobs WHERE over = ? AND uid <> ? "
                     "ORDER BY changed LIMIT 1)")
            .number(std::int64_t{over})
            .text(but)
            .run());
    PL_ASSIGN_OR_RETURN(const std::int64_t dropped, database.number("SELECT changes()"));
    if (dropped > 0) return true;
  }
  return false;
}

// DATA_LOSS where it is damaged, or has another table.
absl::Status check(Database& database) {
  Statement rows = database.prepare("PRAGMA quick_check(1)");
  PL_ASSIGN_OR_RETURN(const bool row, rows.next());
  if (row && rows.text_at(0) != "ok") return absl::DataLossError(rows.text_at(0));
  Statement columns = database.prepare("SELECT group_concat(name) FROM pragma_table_info('jobs')");
  PL_RETURN_IF_ERROR(columns.next().status());
  if (columns.text_at(0) != kColumnNames)
    return absl::DataLossError(str_cat("its table jobs has the columns \"", columns.text_at(0),
                                       "\" and not \"", kColumnNames, "\""));
  return absl::OkStatus();
}

// Makes a file smaller that is larger than so many pages. One that was made without auto_vacuum keeps its
// size.
absl::Status shrink(Database& database, std::int64_t most) {
  PL_ASSIGN_OR_RETURN(const std::int64_t shrinks, database.number("PRAGMA auto_vacuum"));
  PL_ASSIGN_OR_RETURN(std::int64_t pages, database.number("PRAGMA page_count"));
  if (shrinks == 0 || pages <= most) return absl::OkStatus();
  for (bool dropped = true; dropped;) {
    PL_ASSIGN_OR_RETURN(const std::int64_t free, database.number("PRAGMA freelist_count"));
    if (pages - free <= most) break;
    PL_ASSIGN_OR_RETURN(dropped, drop_oldest(database, ""));
  }
  while (pages > most) {
    PL_RETURN_IF_ERROR(database.run(str_cat("PRAGMA incremental_vacuum(", kLogPages, ")")));
    PL_ASSIGN_OR_RETURN(const std::int64_t left, database.number("PRAGMA page_count"));
    if (left == pages) break;
    pages = left;
  }
  return database.run("PRAGMA wal_checkpoint(TRUNCATE)");
}

// Whether a record of so many bytes is what the file's bound has no room for, and not the disk.
absl::StatusOr<bool> is_at_bound(Database& database, std::int64_t bound, std::int64_t bytes) {
  PL_ASSIGN_OR_RETURN(const std::int64_t page, database.number("PRAGMA page_size"));
  PL_ASSIGN_OR_RETURN(const std::int64_t pages, database.number("PRAGMA page_count"));
  PL_ASSIGN_OR_RETURN(const std::int64_t free, database.number("PRAGMA freelist_count"));
  return (pages - free + kTreePages) * page + bytes >= bound;
}

}  // namespace

absl::StatusOr<Database> HistoryStore::begin(const std::string& path, const Limits& limits) {
  PL_ASSIGN_OR_RETURN(Database database, Database::open(path));
  // The log needs no memory shared between processes where one of them has the file for itself. A container
  // has no folder for what is sorted.
  PL_RETURN_IF_ERROR(database.run(str_cat(
      "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA temp_store = MEMORY; PRAGMA locking_mode = EXCLUSIVE; "
      "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = ",
      kLogPages, "; PRAGMA journal_size_limit = ", kLogPages * kPageBytes, "; BEGIN IMMEDIATE; COMMIT")));
  PL_ASSIGN_OR_RETURN(const std::int64_t version, database.number("PRAGMA user_version"));
  if (version > kVersion)
    return absl::FailedPreconditionError(str_cat("it has version ", version,
                                                 " of the history, and this release knows ", kVersion,
                                                 "; name another file"));
  if (version == 0) PL_RETURN_IF_ERROR(database.run(str_cat("BEGIN;", kTables, "COMMIT")));
  PL_RETURN_IF_ERROR(check(database));
  PL_RETURN_IF_ERROR(database.run(kIndex));
  PL_ASSIGN_OR_RETURN(const std::int64_t page, database.number("PRAGMA page_size"));
  PL_RETURN_IF_ERROR(shrink(database, limits.bytes / page));
  PL_RETURN_IF_ERROR(database.run(str_cat("PRAGMA max_page_count = ", limits.bytes / page)));
  return database;
}

absl::Status HistoryStore::set_aside(const std::string& path) {
  if (std::rename(path.c_str(), (path + kAside).c_str()) != 0)
    return absl::InternalError(str_cat(path, " is damaged, and can't be put aside: ", std::strerror(errno)));
  std::remove((path + "-wal").c_str());
  std::remove((path + "-shm").c_str());
  return absl::OkStatus();
}

absl::StatusOr<HistoryStore::Opened> HistoryStore::open(const std::string& path, const Limits& limits) {
  auto database = begin(path, limits);
  std::string remark;
  if (absl::IsDataLoss(database.status())) {
    remark = str_cat(path, " is damaged (", database.status().message(), "): it is ", path, kAside,
                     " now, and the history begins anew");
    PL_RETURN_IF_ERROR(set_aside(path));
    database = begin(path, limits);
  }
  if (!database.ok()) return with_context(database.status(), path);
  return Opened{std::unique_ptr<HistoryStore>(new HistoryStore(*std::move(database), limits)),
                std::move(remark)};
}

bool HistoryStore::has_moved() {
  const std::lock_guard lock(mutex_);
  return database_.has_moved();
}

absl::Status HistoryStore::put(const Record& record, std::optional<std::string_view> series) {
  const auto bytes =
      static_cast<std::int64_t>(record.row.size() + record.object.size() + (series ? series->size() : 0));
  if (bytes > limits_.bytes / 4)
    return absl::ResourceExhaustedError(str_cat("job ", record.ns, "/", record.name, " takes ", bytes,
                                                " bytes, too many for a history of ", limits_.bytes));
  const std::lock_guard lock(mutex_);
  for (;;) {
    const absl::Status written = write(database_, record, series);
    if (!absl::IsResourceExhausted(written)) return written;
    PL_ASSIGN_OR_RETURN(const bool bounded, is_at_bound(database_, limits_.bytes, bytes));
    if (!bounded) return written;  // the disk is full
    PL_ASSIGN_OR_RETURN(const bool dropped, drop_oldest(database_, record.uid));
    if (!dropped) return written;
  }
}

absl::StatusOr<std::vector<Record>> HistoryStore::list(Which which, const std::set<std::string>* namespaces,
                                                       std::size_t most) {
  const std::lock_guard lock(mutex_);
  std::string statement = str_cat(kColumns, "NULL FROM jobs INDEXED BY by_deletion WHERE deleted IS ",
                                  which == Which::kDeleted ? "NOT NULL" : "NULL");
  if (namespaces != nullptr) {
    statement += " AND namespace IN (";
    for (std::size_t i = 0; i < namespaces->size(); ++i) statement += i == 0 ? "?" : ", ?";
    statement += ")";
  }
  Statement rows = database_.prepare(statement + " ORDER BY deleted DESC, created DESC, uid LIMIT ?");
  if (namespaces != nullptr) {
    for (const std::string& ns : *namespaces) rows.text(ns);
  }
  rows.number(static_cast<std::int64_t>(std::min<std::size_t>(most, INT64_MAX)));
  std::vector<Record> records;
  for (;;) {
    PL_ASSIGN_OR_RETURN(const bool row, rows.next());
    if (!row) return records;
    records.push_back(record_of(rows));
  }
}

absl::StatusOr<Record> HistoryStore::find_deleted(const std::string& ns, const std::string& name,
                                                  const std::string& uid) {
  const std::lock_guard lock(mutex_);
  Statement rows = database_.prepare(
      str_cat(kColumns, "object FROM jobs WHERE namespace = ?1 AND name = ?2 AND deleted IS NOT NULL AND ",
              "(?3 = '' OR uid = ?3) ORDER BY created DESC LIMIT 1"));
  PL_ASSIGN_OR_RETURN(const bool row, rows.text(ns).text(name).text(uid).next());
  if (!row) return absl::NotFoundError(str_cat("the history has no deleted job ", ns, "/", name));
  return record_of(rows);
}

absl::StatusOr<std::set<std::string>> HistoryStore::namespaces() {
  const std::lock_guard lock(mutex_);
  Statement rows = database_.prepare(
      "SELECT DISTINCT namespace FROM jobs INDEXED BY by_deletion WHERE deleted IS NOT NULL");
  std::set<std::string> found;
  for (;;) {
    PL_ASSIGN_OR_RETURN(const bool row, rows.next());
    if (!row) return found;
    found.insert(rows.text_at(0));
  }
}

absl::Status HistoryStore::mark_deleted(const std::string& uid, WallTime now) {
  const std::lock_guard lock(mutex_);
  return database_.prepare("UPDATE jobs SET deleted = ?1, changed = ?1, over = 1 WHERE uid = ?2")
      .number(milliseconds(now))
      .text(uid)
      .run();
}

absl::StatusOr<std::string> HistoryStore::series(const std::string& uid) {
  const std::lock_guard lock(mutex_);
  Statement rows = database_.prepare("SELECT series FROM jobs WHERE uid = ?");
  PL_ASSIGN_OR_RETURN(const bool row, rows.text(uid).next());
  return row ? rows.text_at(0) : "";
}

absl::Status HistoryStore::forget(WallTime now) {
  const std::lock_guard lock(mutex_);
  return database_.prepare("DELETE FROM jobs WHERE over = 1 AND changed < ?")
      .number(milliseconds(now - limits_.age))
      .run();
}

}  // namespace paceline::history

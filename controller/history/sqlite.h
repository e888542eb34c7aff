#pragma once

// SQLite (https://sqlite.org) with errors as absl::Status: DATA_LOSS (the file is damaged, or no database),
// RESOURCE_EXHAUSTED (the disk or the file's bound is full), UNAVAILABLE (another process has the file),
// INTERNAL (the rest). One thread at a time.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct sqlite3;
struct sqlite3_stmt;

namespace paceline::history {

class Statement {
 public:
  // Values take their places in order, from the first on. `text` and `bytes` are copied.
  Statement& text(std::string_view value);
  Statement& bytes(std::string_view value);
  Statement& number(std::int64_t value);
  Statement& number(std::optional<std::int64_t> value);  // none: NULL

  // True: a row is there, and the accessors below are its columns, from 0 on.
  absl::StatusOr<bool> next();
  // A statement without rows.
  absl::Status run();

  std::string text_at(int column) const;  // bytes, too; NULL: empty
  std::int64_t number_at(int column) const;
  bool is_null_at(int column) const;

 private:
  friend class Database;
  struct Finalizes {
    void operator()(sqlite3_stmt* statement) const;
  };
  sqlite3* database_ = nullptr;
  std::unique_ptr<sqlite3_stmt, Finalizes> statement_;
  int bound_ = 0;
  absl::Status first_error_;
};

class Database {
 public:
  // Makes the file where there is none.
  static absl::StatusOr<Database> open(const std::string& path);

  // Statements without values or rows, separated by semicolons.
  absl::Status run(const std::string& statements);
  // An error of it is told by the first next() or run().
  Statement prepare(std::string_view statement);
  absl::StatusOr<std::int64_t> number(std::string_view statement);  // the first column of its first row
  // The file was removed, or is another one by now: what is written goes nowhere.
  bool has_moved() const;

 private:
  struct Closes {
    void operator()(sqlite3* database) const;
  };
  std::unique_ptr<sqlite3, Closes> database_;
};

}  // namespace paceline::history

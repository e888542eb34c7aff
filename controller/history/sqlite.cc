#include "controller/history/sqlite.h"

#include <sqlite3.h>

#include "base/status.h"
#include "base/text.h"

namespace paceline::history {

namespace {

constexpr int kPatienceMs = 2000;  // for another process that has the file

absl::StatusCode code_of(int error) {
  switch (error & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::StatusCode::kDataLoss;
    case SQLITE_FULL:
      return absl::StatusCode::kResourceExhausted;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::StatusCode::kUnavailable;
    default:
      return absl::StatusCode::kInternal;
  }
}

absl::Status error_of(sqlite3* database, int error) {
  if (error == SQLITE_OK || error == SQLITE_DONE || error == SQLITE_ROW) return absl::OkStatus();
  return {code_of(error), database == nullptr ? sqlite3_errstr(error) : sqlite3_errmsg(database)};
}

}  // namespace

void Statement::Finalizes::operator()(sqlite3_stmt* statement) const {
  sqlite3_finalize(statement);
}

void Database::Closes::operator()(sqlite3* database) const {
  sqlite3_close_v2(database);
}

Statement& Statement::text(std::string_view value) {
  first_error_.Update(error_of(database_, sqlite3_bind_text64(statement_.get(), ++bound_, value.data(),
                                                              value.size(), SQLITE_TRANSIENT, SQLITE_UTF8)));
  return *this;
}

Statement& Statement::bytes(std::string_view value) {
  first_error_.Update(error_of(database_, sqlite3_bind_blob64(statement_.get(), ++bound_, value.data(),
                                                              value.size(), SQLITE_TRANSIENT)));
  return *this;
}

Statement& Statement::number(std::int64_t value) {
  first_error_.Update(error_of(database_, sqlite3_bind_int64(statement_.get(), ++bound_, value)));
  return *this;
}

Statement& Statement::number(std::optional<std::int64_t> value) {
  if (value) return number(*value);
  first_error_.Update(error_of(database_, sqlite3_bind_null(statement_.get(), ++bound_)));
  return *this;
}

absl::StatusOr<bool> Statement::next() {
  PL_RETURN_IF_ERROR(first_error_);
  const int result = sqlite3_step(statement_.get());
  PL_RETURN_IF_ERROR(error_of(database_, result));
  return result == SQLITE_ROW;
}

absl::Status Statement::run() {
  return next().status();
}

std::string Statement::text_at(int column) const {
  const void* const bytes = sqlite3_column_blob(statement_.get(), column);
  if (bytes == nullptr) return "";
  return {static_cast<const char*>(bytes),
          static_cast<std::size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

std::int64_t Statement::number_at(int column) const {
  return sqlite3_column_int64(statement_.get(), column);
}

bool Statement::is_null_at(int column) const {
  return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL;
}

absl::StatusOr<Database> Database::open(const std::string& path) {
  sqlite3* opened = nullptr;
  const int error =
      sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, nullptr);
  Database database;
  database.database_.reset(opened);
  PL_RETURN_IF_ERROR(with_context(error_of(opened, error), path));
  sqlite3_busy_timeout(opened, kPatienceMs);
  return database;
}

absl::Status Database::run(const std::string& statements) {
  return error_of(database_.get(),
                  sqlite3_exec(database_.get(), statements.c_str(), nullptr, nullptr, nullptr));
}

Statement Database::prepare(std::string_view statement) {
  Statement prepared;
  prepared.database_ = database_.get();
  sqlite3_stmt* made = nullptr;
  const int error = sqlite3_prepare_v2(database_.get(), statement.data(), static_cast<int>(statement.size()),
                                       &made, nullptr);
  prepared.statement_.reset(made);
  prepared.first_error_ = error_of(database_.get(), error);
  return prepared;
}

absl::StatusOr<std::int64_t> Database::number(std::string_view statement) {
  Statement prepared = prepare(statement);
  PL_ASSIGN_OR_RETURN(const bool row, prepared.next());
  return row ? prepared.number_at(0) : 0;
}

bool Database::has_moved() const {
  int moved = 0;
  return sqlite3_file_control(database_.get(), "main", SQLITE_FCNTL_HAS_MOVED, &moved) == SQLITE_OK &&
         moved != 0;
}

}  // namespace paceline::history

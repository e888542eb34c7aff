// Rows of sparse tables: pulls, pushes, and what the tables begin with.

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/status.h"
#include "runtime/pserver/client_impl.h"
#include "runtime/pserver/sparse/row_hash.h"

namespace paceline::pserver {

namespace {

constexpr std::size_t kMostQueued = std::size_t{4} << 20;  // of rows of a checkpoint, before they are sent

}  // namespace

// ---- pulls ----

absl::Status ClientImpl::pull_rows(std::span<const sparse::RowsPull> pulls, Deadline deadline) {
  if (close_.is_closed()) return close_.reason();
  if (interrupted()) return interrupt_.reason();  // what the last pull asked may still be on its way
  PL_CHECK(may_pull_, "rows are pulled in a turn");
  calls_.clear();
  for (const sparse::RowsPull& each : pulls) calls_.push_back({each.table, each.ids, each.rows.size()});
  PL_RETURN_IF_ERROR(pull_.cut(calls_));
  const TimePoint from = clock_.now();
  pulls_ = pulls;
  bytes_came_ = true;  // what is waited for here is the moving of bytes
  ask_for_rows();
  const absl::Status status = wait_for_rows(deadline);
  for (Server& each : servers_) each.owes_rows = false;
  pulls_ = {};
  bytes_came_ = false;
  times_.transfer += clock_.now() - from;
  PL_RETURN_IF_ERROR(status);
  bytes_sent_ += pull_.rows() * sizeof(sparse::RowId);
  bytes_received_ += pull_.floats() * sizeof(float);
  return absl::OkStatus();
}

void ClientImpl::ask_for_rows() {
  ++pull_number_;
  for (int s = 0; s < options_.servers; ++s) {
    const RowCut::OfServer& of = pull_.of(s);
    if (of.rows == 0) continue;
    rows_message_.clear();
    for (const RowCut::Part& part : of.parts) rows_message_.push_back({part.table, part.count, 0});
    encode(rows_message_, buffer_);
    Server& to = server(s);
    to.owes_rows = true;
    to.part = 0;
    to.begins = 0;
    send(to.link, FrameKind::kPullRows, pull_number_, buffer_);
    to.link.send_straight({.kind = FrameKind::kRowIds, .rank = rank_, .number = pull_number_},
                          std::as_bytes(of.ids.all()));
  }
}

absl::Status ClientImpl::wait_for_rows(Deadline deadline) {
  const TimePoint from = clock_.now();
  ProgressDeadline progress(clock_, deadline);
  const auto moved = [this] {
    std::uint64_t bytes = 0;
    for (const Server& each : servers_) bytes += each.moved();
    return bytes;
  };
  progress.count(moved());
  const auto owes = [](const Server& each) { return each.owes_rows; };
  for (auto at = servers_.begin();
       (at = std::find_if(servers_.begin(), servers_.end(), owes)) != servers_.end();) {
    const absl::Status pumped = pump(progress.deadline());
    if (absl::IsDeadlineExceeded(pumped)) {
      progress.count(moved());
      if (!progress.expired()) continue;
      return fail(at->link.blame(absl::DeadlineExceededError(
          str_cat("has not sent its rows after ", format_duration(clock_.now() - from)))));
    }
    PL_RETURN_IF_ERROR(pumped);
  }
  return absl::OkStatus();
}

bool ClientImpl::fits_pull(int index, const FrameHeader& header) const {
  const Server& from = servers_[static_cast<std::size_t>(index)];
  const std::size_t bytes = shared_ ? 0 : pull_.of(index).float_count * sizeof(float);
  return from.owes_rows && header.number == pull_number_ && header.length == bytes;
}

// Rows come in the order of the server's ids. With one server that is the caller's, table by table.
absl::StatusOr<std::span<std::byte>> ClientImpl::place_rows(int index, const FrameHeader& header,
                                                            std::uint64_t at) {
  if (!fits_pull(index, header)) return unexpected(header);
  Server& from = server(index);
  const RowCut::OfServer& of = pull_.of(index);
  for (;; ++from.part) {
    const RowCut::Part& part = of.parts[from.part];
    const std::uint64_t bytes = std::uint64_t{part.count} * part.dim * sizeof(float);
    if (at < from.begins + bytes) break;
    from.begins += bytes;
  }
  const RowCut::Part& part = of.parts[from.part];
  const std::span<std::byte> rows = std::as_writable_bytes(pulls_[part.call].rows);
  const std::uint64_t within = at - from.begins;
  if (!pull_.placed()) return rows.subspan(within);
  const std::size_t row = part.dim * sizeof(float);
  const std::size_t place = of.places.all()[part.first + within / row];
  return rows.subspan(place * row, row).subspan(within % row);
}

absl::Status ClientImpl::on_rows(int index, const FrameHeader& header) {
  if (!fits_pull(index, header)) return unexpected(header);
  Server& from = server(index);
  from.owes_rows = false;
  if (!shared_) return absl::OkStatus();
  const RowCut::OfServer& of = pull_.of(index);
  PL_ASSIGN_OR_RETURN(const float* row, find_share(from.arena, header.begin, of.float_count));
  for (const RowCut::Part& part : of.parts) {
    float* const rows = pulls_[part.call].rows.data();
    if (!pull_.placed()) {
      std::memcpy(rows, row, part.count * part.dim * sizeof(float));
      row += part.count * part.dim;
      continue;
    }
    const std::uint32_t* const places = of.places.all().data() + part.first;
    for (std::size_t k = 0; k < part.count; ++k, row += part.dim) {
      std::memcpy(rows + places[k] * part.dim, row, part.dim * sizeof(float));
    }
  }
  return absl::OkStatus();
}

// ---- pushes ----

absl::Status ClientImpl::push_rows(std::span<const sparse::RowsPush> pushes) {
  if (close_.is_closed()) return close_.reason();
  PL_CHECK(unit_ >= 0 && !rows_pushed_now_, "rows are pushed in a turn, once");
  calls_.clear();
  for (const sparse::RowsPush& each : pushes) {
    calls_.push_back({each.table, each.ids, each.gradient.size()});
    if (each.gradient.empty() || arena_.contains(each.gradient.data(), each.gradient.size_bytes())) continue;
    return absl::InvalidArgumentError(
        str_cat("the gradient of rows of table ", each.table, " does not lie in the fabric's arena"));
  }
  PL_RETURN_IF_ERROR(push_.cut(calls_));
  const TimePoint from = clock_.now();
  rows_pushed_now_ = true;
  for (int s = 0; s < options_.servers; ++s) {
    if (push_.of(s).rows > 0) send_rows(s, pushes);
  }
  const absl::Status flushed = flush_all();
  times_.transfer += clock_.now() - from;
  bytes_sent_ += push_.rows() * sizeof(sparse::RowId) + push_.floats() * sizeof(float);
  return flushed;
}

// Sharing memory, gradients stay where they are. Over TCP they go from there, too, where one server takes all
// of them; else each server's are brought together first.
void ClientImpl::send_rows(int index, std::span<const sparse::RowsPush> pushes) {
  RowCut::OfServer& of = push_.of(index);
  Link& link = server(index).link;
  rows_message_.clear();
  for (const RowCut::Part& part : of.parts) {
    const std::span<const float> gradient = pushes[part.call].gradient;
    const std::uint64_t at = shared_ && !gradient.empty() ? arena_.offset_of(gradient.data()) : 0;
    rows_message_.push_back({part.table, part.count, at});
  }
  encode(rows_message_, buffer_);
  const bool placed = shared_ && push_.placed();
  link.send({.kind = FrameKind::kPushRows, .rank = rank_, .number = unit_, .begin = placed ? 1u : 0u},
            buffer_);
  link.send_straight({.kind = FrameKind::kRowIds, .rank = rank_, .number = unit_},
                     std::as_bytes(of.ids.all()));
  if (placed) {
    link.send_straight({.kind = FrameKind::kRowPlaces, .rank = rank_, .number = unit_},
                       std::as_bytes(of.places.all()));
  }
  if (shared_) return;
  FrameHeader header{.kind = FrameKind::kRowGradient, .rank = rank_, .number = unit_};
  if (!push_.placed()) {
    for (const RowCut::Part& part : of.parts) {
      header.begin = part.floats;
      link.send_floats(header, pushes[part.call].gradient);
    }
    return;
  }
  const std::span<float> together = of.floats.take(of.float_count);
  float* to = together.data();
  for (const RowCut::Part& part : of.parts) {
    const float* const gradient = pushes[part.call].gradient.data();
    const std::uint32_t* const places = of.places.all().data() + part.first;
    for (std::size_t k = 0; k < part.count; ++k, to += part.dim) {
      std::memcpy(to, gradient + places[k] * part.dim, part.dim * sizeof(float));
    }
  }
  link.send_floats(header, together);
}

// ---- what the tables begin with ----

absl::Status ClientImpl::send_initial_rows(sparse::RowSource* source, ProgressDeadline& progress) {
  batches_.resize(servers_.size());
  sparse::SavedRows rows;
  while (source != nullptr) {
    rows.clear();
    const absl::StatusOr<int> table = source->next(rows);
    if (!table.ok()) return fail(table.status());
    if (rows.size() == 0) break;
    if (close_.is_closed()) return close_.reason();  // where servers are fast, drain() never asks
    if (interrupted()) return interrupt_.reason();
    progress.moved();  // however long the source took
    PL_RETURN_IF_ERROR(send_batch(*table, rows, progress));
  }
  batches_ = {};
  for (Server& each : servers_) send(each.link, FrameKind::kRowsRestored, 0);
  return drain("the rows", progress);
}

absl::Status ClientImpl::send_batch(int table, const sparse::SavedRows& rows, ProgressDeadline& progress) {
  if (table < 0 || static_cast<std::size_t>(table) >= options_.tables.size()) {
    return fail(absl::InvalidArgumentError(
        str_cat("rows for table ", table, " of ", options_.tables.size(), ": there is no such table")));
  }
  const sparse::TableSpec& spec = options_.tables[static_cast<std::size_t>(table)];
  const std::size_t floats = sparse::row_floats(spec), n = rows.size();
  if (rows.floats.size() != n * floats || rows.last.size() != n || rows.uses.size() != n ||
      rows.steps.size() != n) {
    return fail(
        absl::InvalidArgumentError(str_cat("table ", spec.name, ": ", n, " rows with ", rows.floats.size(),
                                           " floats; weights and state are ", floats, " a row")));
  }
  const std::size_t most = rows_of_batch(floats);
  const auto queue_batch = [&](int s) {
    sparse::SavedRows& batch = batches_[static_cast<std::size_t>(s)];
    encode(batch, buffer_);
    server(s).link.send({.kind = FrameKind::kSavedRows, .rank = table}, buffer_);
    queued_bytes_ += buffer_.size();
    batch.clear();
  };
  const auto make_room = [&]() -> absl::Status {
    if (queued_bytes_ < kMostQueued) return flush_all();
    queued_bytes_ = 0;
    return drain("the rows", progress);
  };
  for (std::size_t k = 0; k < n; ++k) {
    const int s = sparse::server_of(rows.ids[k], options_.servers);
    sparse::SavedRows& batch = batches_[static_cast<std::size_t>(s)];
    batch.append(rows, k, floats);
    if (batch.size() < most) continue;
    queue_batch(s);
    PL_RETURN_IF_ERROR(make_room());
  }
  for (int s = 0; s < options_.servers; ++s) {
    if (batches_[static_cast<std::size_t>(s)].size() > 0) queue_batch(s);
  }
  return make_room();
}

}  // namespace paceline::pserver

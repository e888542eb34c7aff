// Sparse tables: what a server does with rows. Pulls are answered as they come, between the log's entries;
// pushes wait in their worker's RowInbox for the fate of the unit's dense gradient.

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/status.h"
#include "runtime/pserver/server_impl.h"
#include "runtime/pserver/sparse/row_hash.h"

namespace paceline::pserver {

namespace {

constexpr std::size_t kHottest = 8;  // ServerStats
// Of a snapshot, before worker 0 may ask for more: it asks for two batches at a time.
constexpr std::size_t kMostWaiting = 4 * kRowsBatchBytes;

}  // namespace

// ---- pulls and pushes ----

absl::Status ServerImpl::from_worker_rows(int rank, const FrameHeader& header, Bytes message) {
  Worker& from = worker(rank);
  if (!ready_ || !from.joined || from.held) return unexpected(header);
  PL_RETURN_IF_ERROR(from.rows->received(header, message));
  if (header.kind != FrameKind::kPullRows && header.kind != FrameKind::kPushRows) {
    bytes_received_ += header.kind == FrameKind::kRowPlaces ? 0 : header.length;
  }
  return from.rows->pull() != nullptr ? answer_pull(rank) : absl::OkStatus();
}

absl::Status ServerImpl::answer_pull(int rank) {
  Worker& from = worker(rank);
  const RowInbox::Pull& pull = *from.rows->pull();
  if (!from.link.drained()) {  // the memory of the last answer is still being sent
    return absl::InvalidArgumentError("asks for rows before it has read what was sent to it");
  }
  const auto memory = memory_of_answer(from, pull.floats);
  if (!memory.ok()) {
    return own_error(with_context(memory.status(), str_cat("rows that ", from.link.name(), " asks for")));
  }
  const std::span<float> rows = *memory;
  float* to = rows.data();
  std::size_t first = 0;
  for (const RowsOfTable& part : pull.parts) {
    sparse::SparseTable& table = tables_[part.table];
    table.pull(pull.ids.all().subspan(first, part.count), to);
    first += part.count;
    to += part.count * table.spec().dim;
  }
  FrameHeader header{.kind = FrameKind::kRows, .number = pull.number};
  if (shared_) {
    header.begin = arena_.offset_of(rows.data());
    from.link.send(header);
  } else {
    from.link.send_floats(header, rows);
  }
  bytes_sent_ += rows.size_bytes();
  from.rows->answered();
  return from.link.flush();
}

absl::StatusOr<std::span<float>> ServerImpl::memory_of_answer(Worker& to, std::size_t floats) {
  if (!shared_) return to.answer.take(floats);
  if (to.shared_answer.size() < floats) {
    const std::size_t room = std::bit_ceil(floats);
    PL_ASSIGN_OR_RETURN(const std::span<std::byte> memory, arena_.allocate(room * sizeof(float)));
    to.shared_answer = {reinterpret_cast<float*>(memory.data()), room};
  }
  return to.shared_answer.first(floats);
}

// ---- updates ----

void ServerImpl::find_rows(const LogEntry& entry, std::uint32_t table) {
  row_parts_.clear();
  for (const Contributor& each : entry.contributors) {
    const RowInbox& rows = *worker(each.worker).rows;
    if (each.aside) rows.find_aside(table, row_parts_);
    if (each.last) rows.find(table, row_parts_);
  }
}

double ServerImpl::fraction_of(const LogEntry& entry) const {
  const double full = options_.optimizer.learning_rate();
  return full > 0 ? entry.learning_rate / full : 1;
}

// Every table's clock counts every update, whether it has rows of the table or not.
absl::Status ServerImpl::update_rows(const LogEntry& entry) {
  for (std::uint32_t t = 0; t < tables_.size(); ++t) {
    find_rows(entry, t);
    PL_RETURN_IF_ERROR(tables_[t].update(row_parts_, entry.scale, fraction_of(entry)));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> ServerImpl::gather_rows(const LogEntry& entry) {
  double squares = 0;
  for (std::uint32_t t = 0; t < tables_.size(); ++t) {
    find_rows(entry, t);
    PL_ASSIGN_OR_RETURN(const double part, tables_[t].gather(row_parts_));
    squares += part;
  }
  return squares;
}

void ServerImpl::step_rows(const LogEntry& entry, float factor) {
  for (sparse::SparseTable& table : tables_) table.step(factor, fraction_of(entry));
}

// ---- the beginning ----

absl::Status ServerImpl::on_saved_rows(const FrameHeader& header, Bytes message) {
  if (!begun_ || ready_ || rows_restored_ || header.rank < 0 ||
      static_cast<std::size_t>(header.rank) >= tables_.size()) {
    return unexpected(header);
  }
  sparse::SparseTable& table = tables_[static_cast<std::size_t>(header.rank)];
  PL_RETURN_IF_ERROR(decode(message, table.row_floats(), saved_));
  for (const sparse::RowId id : saved_.ids) {
    if (sparse::server_of(id, options_.shape.servers) == index_) continue;
    return absl::InvalidArgumentError(
        str_cat("table ", table.spec().name, ": brings row ", id, ", which is another server's"));
  }
  const absl::Status restored = table.restore(saved_);
  return absl::IsResourceExhausted(restored) ? own_error(restored) : restored;
}

absl::Status ServerImpl::on_rows_restored(const FrameHeader& header) {
  if (!begun_ || ready_ || rows_restored_) return unexpected(header);
  rows_restored_ = true;
  saved_ = {};
  return ready_when_whole();
}

// ---- snapshots ----

void ServerImpl::mark_tables() {
  if (tables_.empty()) return;
  TablesMessage marks;
  for (sparse::SparseTable& table : tables_) marks.push_back({table.begin_snapshot(), table.clock()});
  snapshot_version_ = version_;
  encode(marks, buffer_);
  send(worker(0).copies, FrameKind::kTables, version_, buffer_);
}

absl::Status ServerImpl::on_take_rows(int rank, const FrameHeader& header) {
  Link& to = worker(rank).copies;
  if (rank != 0 || copies_out_ == 0 || header.number != snapshot_version_ || header.rank < 0 ||
      static_cast<std::size_t>(header.rank) >= tables_.size()) {
    return unexpected(header);
  }
  if (to.waiting() > kMostWaiting) {
    return absl::InvalidArgumentError(str_cat("asks for more rows of a snapshot before it has read the last ",
                                              to.waiting(), " bytes of them"));
  }
  sparse::SparseTable& table = tables_[static_cast<std::size_t>(header.rank)];
  table.next_saved(rows_of_batch(table.row_floats()), saved_);
  encode(saved_, buffer_);
  send(to, FrameKind::kSavedRows, snapshot_version_, buffer_, header.rank);
  return to.flush();  // an update that waited for this goes on in poll_once()
}

void ServerImpl::drop_row_snapshots() {
  for (sparse::SparseTable& table : tables_) table.end_snapshot();
  saved_ = {};
}

bool ServerImpl::too_much_is_kept() const {
  std::uint64_t kept = 0;
  for (const sparse::SparseTable& table : tables_) kept += table.kept_bytes();
  return kept > options_.max_kept_bytes;
}

bool ServerImpl::held_up_by_snapshot() {
  using Hold = WaitingMessage::Hold;
  const Hold hold = too_much_is_kept() ? Hold::kSnapshot : Hold::kNone;
  if (hold == hold_) return hold != Hold::kNone;
  hold_ = hold;
  moved_at_ = clock_.now();
  if (hold == Hold::kNone) released_at_ = moved_at_;
  return hold != Hold::kNone;
}

// ---- statistics ----

void ServerImpl::publish_rows() {
  if (tables_.empty()) return;
  sparse::TableStats all;
  std::vector<v1::HotRow> hottest;
  for (const sparse::SparseTable& table : tables_) {
    const sparse::TableStats stats = table.stats();
    all.rows += stats.rows;
    all.bytes += stats.bytes;
    all.hits += stats.hits;
    all.misses += stats.misses;
    all.creates += stats.creates;
    all.evictions += stats.evictions;
    for (const sparse::HotRows::Row& hot : table.hot().hottest(kHottest)) {
      v1::HotRow row;
      row.set_table(table.spec().name);
      row.set_id(hot.id);
      row.set_pulls(hot.pulls);
      hottest.push_back(std::move(row));
    }
  }
  std::stable_sort(hottest.begin(), hottest.end(),
                   [](const v1::HotRow& a, const v1::HotRow& b) { return a.pulls() > b.pulls(); });
  if (hottest.size() > kHottest) hottest.resize(kHottest);
  auto told = row_stats_.lock();
  told->set_rows(static_cast<std::int64_t>(all.rows));
  told->set_row_bytes(all.bytes);
  told->set_row_hits(static_cast<std::int64_t>(all.hits));
  told->set_row_misses(static_cast<std::int64_t>(all.misses));
  told->set_rows_created(static_cast<std::int64_t>(all.creates));
  told->set_rows_evicted(static_cast<std::int64_t>(all.evictions));
  told->clear_hottest();
  for (v1::HotRow& row : hottest) *told->add_hottest() = std::move(row);
}

}  // namespace paceline::pserver

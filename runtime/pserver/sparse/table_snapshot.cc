// Snapshots: a cursor goes over all rows, in the order of their numbers; a row that an update reaches before
// the cursor does is copied aside first, once. A number that is free when the snapshot begins is marked when
// a new row takes it.

#include "base/check.h"
#include "base/status.h"
#include "runtime/pserver/sparse/row_hash.h"
#include "runtime/pserver/sparse/sparse_table.h"

namespace paceline::pserver::sparse {

std::uint64_t SparseTable::begin_snapshot() {
  end_snapshot();
  snapshot_open_ = true;
  snapshot_end_ = store_.end();
  given_.assign(snapshot_end_, false);
  return store_.rows();
}

void SparseTable::keep(std::uint32_t row) {
  const RowNote& note = store_.note(row);
  kept_.append(note.id, note.last, note.uses, note.steps, {store_.floats(row), row_floats()});
  given_[row] = true;
}

void SparseTable::next_saved(std::size_t most, SavedRows& rows) {
  rows.clear();
  PL_CHECK(most > 0, "a batch of rows is of one or more");
  if (!snapshot_open_) return;
  kept_.take(most, rows);
  for (; cursor_ < snapshot_end_ && rows.size() < most; ++cursor_) {
    const RowNote& note = store_.note(cursor_);
    if (given_[cursor_] || note.last == RowNote::kFree) continue;
    rows.append(note.id, note.last, note.uses, note.steps, {store_.floats(cursor_), row_floats()});
  }
  if (rows.size() == 0) end_snapshot();
}

void SparseTable::end_snapshot() {
  snapshot_open_ = false;
  cursor_ = snapshot_end_ = 0;
  given_ = {};
  kept_.clear();
}

absl::Status SparseTable::restore(const SavedRows& rows) {
  PL_CHECK(!snapshot_open_ && rows.floats.size() == rows.size() * row_floats(), "rows with all their floats");
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const RowId id = rows.ids[k];
    const std::uint64_t hash = hash_of(id);
    if (rows.last[k] < 0 || find(id, hash) != RowIndex::kNone) {
      return absl::InvalidArgumentError(
          str_cat("table ", spec_.name, ": row ", id,
                  rows.last[k] < 0 ? " was last used before the first update" : " comes twice"));
    }
    PL_ASSIGN_OR_RETURN(const std::uint32_t row, store_.take());
    RowNote& note = store_.note(row);
    note.id = id;
    note.last = rows.last[k];
    note.uses = rows.uses[k];
    note.steps = rows.steps[k];
    std::copy_n(rows.floats.data() + k * row_floats(), row_floats(), store_.floats(row));
    PL_RETURN_IF_ERROR(index_.insert(hash, row));
    clock_ = std::max(clock_, note.last);  // else it would seem touched by a later update
  }
  return absl::OkStatus();
}

}  // namespace paceline::pserver::sparse

#pragma once

// One server's part of a sparse table: rows by id, the optimiser's state beside them, and what bounds them
// (docs/parameter-servers.md, "Sparse tables"). What it holds is a function of the updates alone: a pull
// creates nothing and moves nothing, so that it may come at any time and in any order. With a bound, which
// rows go depends on the number of servers, too; without one, nothing does.
//
// Growth is incremental: a row that is new costs one block of the store or one split of the index at most,
// an eviction looks at kEvictLook rows at most. Memory: 32 bytes, 10 to 20 of index, and the row's floats
// and state for each row; what was given back is used again, not returned. One thread at a time.
// RESOURCE_EXHAUSTED: no memory for a new row; the table is of no use after it.

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/pserver/sparse/hot_rows.h"
#include "runtime/pserver/sparse/row_index.h"
#include "runtime/pserver/sparse/row_optimizer.h"
#include "runtime/pserver/sparse/row_store.h"
#include "runtime/pserver/sparse/saved_rows.h"
#include "runtime/pserver/sparse/table_spec.h"

namespace paceline::pserver::sparse {

// One contributor's gradients, where they lie. Row ids[k] has its own at dim * places[k], or, without places,
// at dim * k. The ids rise.
struct GradientRows {
  std::span<const RowId> ids;
  const float* gradient = nullptr;
  const std::uint32_t* places = nullptr;
};

struct TableStats {
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
  std::uint64_t hits = 0;    // rows pulled that were there
  std::uint64_t misses = 0;  // ... and that were not
  std::uint64_t creates = 0;
  std::uint64_t evictions = 0;
};

class SparseTable {
 public:
  // Of one of `servers` servers: a bound is shared evenly, rounded up. REQUIRES: check() accepts the spec.
  SparseTable(const TableSpec& spec, int servers);
  SparseTable(const SparseTable&) = delete;
  SparseTable& operator=(const SparseTable&) = delete;

  const TableSpec& spec() const { return spec_; }
  std::size_t row_floats() const { return stepper_.row_floats(); }

  // Weights of the rows, one behind the other; initial ones of rows that are not there.
  void pull(std::span<const RowId> ids, float* rows);

  // An update: rows get the sum of their gradients, added in the order of `parts`, times `factor`, in one
  // step at `fraction` of the table's learning rate; rows that are not there are created first. In two
  // halves where the factor is known only after the sum: gather() returns the sum of squares of the summed
  // gradients. What `parts` name stays until step().
  absl::Status update(std::span<const GradientRows> parts, float factor, double fraction);
  absl::StatusOr<double> gather(std::span<const GradientRows> parts);
  void step(float factor, double fraction);

  // ---- snapshots (table_snapshot.cc) ----
  // From now on next_saved() gives the rows as they are at this moment (but for counts of uses, which may
  // fade), while updates go on: what these change first is kept as it was. Returns how many rows there are. A
  // snapshot before it is dropped.
  std::uint64_t begin_snapshot();
  // Fills `rows` with at most `most` of them; none: there are no more, and the snapshot is over.
  void next_saved(std::size_t most, SavedRows& rows);
  void end_snapshot();
  bool snapshot_is_open() const { return snapshot_open_; }
  // Memory of rows that were changed before they were given; it goes as they are given.
  std::uint64_t kept_bytes() const { return kept_.bytes(); }

  // Takes rows of a checkpoint. INVALID_ARGUMENT: a row that is there already, or numbers that can't be
  // meant. REQUIRES: as many floats as rows need; no snapshot is open.
  absl::Status restore(const SavedRows& rows);
  // Updates so far: rows' ages count from here.
  std::int64_t clock() const { return clock_; }
  void set_clock(std::int64_t clock) { clock_ = clock; }

  TableStats stats() const;
  const HotRows& hot() const { return hot_; }

  static constexpr std::size_t kEvictLook = 64;        // rows looked at for one eviction, ...
  static constexpr std::size_t kEvictCandidates = 16;  // ... and compared

 private:
  static constexpr std::uint32_t kNoSum = 0xffffffff;
  struct Touched {
    const float* gradient;
    std::uint32_t row;
    std::uint32_t sum;  // place in sums_, or kNoSum: the gradient is one contributor's
  };
  struct Missing {
    RowId id;
    const float* gradient;
  };

  // Calls each(k, hash, row) for every id in turn, with its row or kNone; rows are on their way into the
  // cache by then, `floats` of each.
  template <typename Each>
  void each_row(std::span<const RowId> ids, std::size_t floats, Each each);
  // Calls each(row, gradient), which touches the row, for every row of an update; rows that are not there
  // are created first. The first error of that is returned, and no more are created then.
  template <typename Each>
  absl::Status each_gradient(std::span<const GradientRows> parts, std::size_t floats, Each each);
  std::uint32_t find(RowId id, std::uint64_t hash) const;
  absl::StatusOr<std::uint32_t> create(RowId id, std::uint64_t hash);
  bool is_full() const { return bound_ > 0 && store_.rows() >= bound_; }
  bool evict_one();
  void touch(std::uint32_t row);
  void add(std::uint32_t row, const float* gradient);
  void keep(std::uint32_t row);
  bool must_keep(std::uint32_t row) const {
    return snapshot_open_ && row >= cursor_ && row < snapshot_end_ && !given_[row];
  }

  const TableSpec spec_;
  const std::uint64_t bound_;  // of this part; 0: none
  RowStepper stepper_;
  RowStore store_;
  RowIndex index_;
  std::int64_t clock_ = 0;
  std::uint32_t hand_ = 0;        // of evictions
  std::vector<Missing> missing_;  // rows of an update for which others have to go
  std::vector<Touched> touched_;
  std::vector<float> sums_;

  bool snapshot_open_ = false;
  std::uint32_t cursor_ = 0, snapshot_end_ = 0;
  std::vector<bool> given_;  // rows that the snapshot does not have, or that are in kept_
  KeptRows kept_;

  std::uint64_t hits_ = 0, misses_ = 0, creates_ = 0, evictions_ = 0;
  HotRows hot_;
};

}  // namespace paceline::pserver::sparse

// Lookups go in blocks, so that a block's cache misses overlap: first the buckets of the index, then the
// notes of the rows that they name, then the work, with the floats of a row fetched some rows before it. (All
// floats of a block at once are more than the processor's nearest cache holds.) An update of one contributor
// steps each row as it is found; with several the first pass finds and sums, the second steps. Rows that are
// new where the table is full come last.

#include "runtime/pserver/sparse/sparse_table.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/check.h"
#include "base/status.h"
#include "runtime/pserver/sparse/initializer.h"
#include "runtime/pserver/sparse/row_hash.h"

namespace paceline::pserver::sparse {

namespace {

constexpr std::size_t kBlock = 64;
constexpr std::size_t kAhead = 8;  // rows whose floats are on their way

}  // namespace

SparseTable::SparseTable(const TableSpec& spec, int servers)
    : spec_(spec),
      bound_((spec.bound.max_rows + static_cast<std::uint64_t>(servers) - 1) /
             static_cast<std::uint64_t>(servers)),
      stepper_(spec.optimizer, spec.dim),
      store_(stepper_.row_floats()),
      kept_(stepper_.row_floats()) {}

std::uint32_t SparseTable::find(RowId id, std::uint64_t hash) const {
  return index_.find(hash, [&](std::uint32_t row) { return store_.note(row).id == id; });
}

template <typename Each>
void SparseTable::each_row(std::span<const RowId> ids, std::size_t floats, Each each) {
  std::array<std::uint64_t, kBlock> hashes;
  std::array<std::uint32_t, kBlock> likely;
  for (std::size_t from = 0; from < ids.size(); from += kBlock) {
    const std::size_t count = std::min(kBlock, ids.size() - from);
    for (std::size_t k = 0; k < count; ++k) {
      hashes[k] = hash_of(ids[from + k]);
      index_.fetch(hashes[k]);
    }
    for (std::size_t k = 0; k < count; ++k) {
      likely[k] = index_.find(hashes[k], [](std::uint32_t) { return true; });
      if (likely[k] != RowIndex::kNone) store_.fetch(likely[k], k < kAhead ? floats : 0);
    }
    for (std::size_t k = 0; k < count; ++k) {
      if (k + kAhead < count && likely[k + kAhead] != RowIndex::kNone) {
        store_.fetch(likely[k + kAhead], floats);
      }
      const RowId id = ids[from + k];
      std::uint32_t row = likely[k];
      if (row != RowIndex::kNone && (store_.note(row).id != id || store_.note(row).last == RowNote::kFree)) {
        row = find(id, hashes[k]);
      }
      each(from + k, hashes[k], row);
    }
  }
}

// ---- pulls ----

void SparseTable::pull(std::span<const RowId> ids, float* rows) {
  const std::size_t dim = spec_.dim;
  std::uint64_t misses = 0;
  each_row(ids, dim, [&](std::size_t k, std::uint64_t, std::uint32_t row) {
    float* const to = rows + k * dim;
    if (row != RowIndex::kNone) {
      std::memcpy(to, store_.floats(row), dim * sizeof(float));
      return;
    }
    ++misses;
    initialize_row(spec_.initializer, spec_.seed, ids[k], {to, dim});
  });
  misses_ += misses;
  hits_ += ids.size() - misses;
  hot_.count(ids);
}

// ---- updates ----

void SparseTable::touch(std::uint32_t row) {
  if (must_keep(row)) keep(row);
  RowNote& note = store_.note(row);
  note.last = clock_;
  if (note.uses < 0xffffffff) ++note.uses;
  if (note.steps < 0xffffffff) ++note.steps;
}

// Rows for which others have to go wait until all of the update's that are there are touched: else it could
// lose one that it has not come to yet, and begin it anew.
template <typename Each>
absl::Status SparseTable::each_gradient(std::span<const GradientRows> parts, std::size_t floats, Each each) {
  absl::Status failed;
  missing_.clear();
  for (const GradientRows& part : parts) {
    each_row(part.ids, floats, [&](std::size_t k, std::uint64_t hash, std::uint32_t row) {
      const std::size_t place = part.places != nullptr ? part.places[k] : k;
      const float* const gradient = part.gradient + place * spec_.dim;
      if (row == RowIndex::kNone) {
        if (!failed.ok()) return;
        if (is_full()) {
          missing_.push_back({part.ids[k], gradient});
          return;
        }
        auto created = create(part.ids[k], hash);
        if (!created.ok()) {
          failed = created.status();
          return;
        }
        row = *created;
      }
      each(row, gradient);
    });
    PL_RETURN_IF_ERROR(failed);
  }
  for (std::size_t k = 0; k < missing_.size(); ++k) {
    if (k + kAhead < missing_.size()) index_.fetch(hash_of(missing_[k + kAhead].id));
    const auto [id, gradient] = missing_[k];
    const std::uint64_t hash = hash_of(id);
    std::uint32_t row = find(id, hash);  // several may bring it
    if (row == RowIndex::kNone) {
      PL_ASSIGN_OR_RETURN(row, create(id, hash));
    }
    each(row, gradient);
  }
  return absl::OkStatus();
}

absl::Status SparseTable::update(std::span<const GradientRows> parts, float factor, double fraction) {
  if (parts.size() != 1) {
    PL_RETURN_IF_ERROR(gather(parts).status());
    step(factor, fraction);
    return absl::OkStatus();
  }
  ++clock_;
  stepper_.begin(factor, fraction);
  return each_gradient(parts, row_floats(), [&](std::uint32_t row, const float* gradient) {
    touch(row);
    stepper_.step(store_.floats(row), gradient, store_.note(row).steps);
  });
}

absl::StatusOr<double> SparseTable::gather(std::span<const GradientRows> parts) {
  ++clock_;
  touched_.clear();
  sums_.clear();
  PL_RETURN_IF_ERROR(
      each_gradient(parts, 0, [&](std::uint32_t row, const float* gradient) { add(row, gradient); }));
  double squares = 0;
  const tensor::cpu::Kernels& kernels = tensor::cpu::kernels();
  for (Touched& each : touched_) {
    if (each.sum != kNoSum) each.gradient = sums_.data() + each.sum * spec_.dim;
    squares += kernels.squared_norm(each.gradient, spec_.dim);
  }
  return squares;
}

void SparseTable::add(std::uint32_t row, const float* gradient) {
  RowNote& note = store_.note(row);
  if (note.last != clock_) {
    touch(row);
    note.mark = static_cast<std::uint32_t>(touched_.size());
    touched_.push_back({gradient, row, kNoSum});
    return;
  }
  Touched& before = touched_[note.mark];
  if (before.sum == kNoSum) {
    before.sum = static_cast<std::uint32_t>(sums_.size() / spec_.dim);
    sums_.insert(sums_.end(), before.gradient, before.gradient + spec_.dim);
  }
  float* const sum = sums_.data() + before.sum * spec_.dim;
  tensor::cpu::kernels().add(sum, gradient, sum, spec_.dim);
}

void SparseTable::step(float factor, double fraction) {
  stepper_.begin(factor, fraction);
  for (std::size_t k = 0; k < touched_.size(); ++k) {
    if (k + kAhead < touched_.size()) store_.fetch(touched_[k + kAhead].row, row_floats());
    const Touched& each = touched_[k];
    stepper_.step(store_.floats(each.row), each.gradient, store_.note(each.row).steps);
  }
  touched_.clear();
}

// ---- rows come and go ----

absl::StatusOr<std::uint32_t> SparseTable::create(RowId id, std::uint64_t hash) {
  // Two for one, so that a table above its bound (an update may have more rows than that) comes down again.
  for (int k = 0; k < 2 && is_full(); ++k) {
    if (!evict_one()) break;
  }
  PL_ASSIGN_OR_RETURN(const std::uint32_t row, store_.take());
  if (must_keep(row)) given_[row] = true;  // it was not there when the snapshot began
  RowNote& note = store_.note(row);
  note.id = id;
  note.last = 0;
  initialize_row(spec_.initializer, spec_.seed, id, {store_.floats(row), spec_.dim});
  stepper_.start(store_.floats(row));
  PL_RETURN_IF_ERROR(index_.insert(hash, row));
  ++creates_;
  return row;
}

// The hand goes round all rows. What this update has touched stays.
bool SparseTable::evict_one() {
  const bool by_age = spec_.bound.evict == RowBound::Evict::kLeastRecent;
  std::uint32_t worst = RowIndex::kNone;
  std::int64_t worst_last = 0;
  std::uint32_t worst_uses = 0;
  std::size_t candidates = 0;
  const std::size_t look = std::min<std::size_t>(kEvictLook, store_.end());  // no row twice
  for (std::size_t k = 0; k < look && candidates < kEvictCandidates; ++k) {
    if (hand_ >= store_.end()) hand_ = 0;
    const std::uint32_t row = hand_++;
    RowNote& note = store_.note(row);
    if (note.last == RowNote::kFree || note.last == clock_) continue;
    ++candidates;
    const bool older = note.last < worst_last;
    const bool worse = by_age || note.uses == worst_uses ? older : note.uses < worst_uses;
    if (worst == RowIndex::kNone || worse) {
      worst = row;
      worst_last = note.last;
      worst_uses = note.uses;
    }
    if (!by_age) note.uses /= 2;  // what was used long ago fades
  }
  if (worst == RowIndex::kNone) return false;
  if (must_keep(worst)) keep(worst);
  index_.erase(hash_of(store_.note(worst).id), worst);
  store_.give_back(worst);
  ++evictions_;
  return true;
}

TableStats SparseTable::stats() const {
  return {.rows = store_.rows(),
          .bytes = store_.bytes() + index_.bytes(),
          .hits = hits_,
          .misses = misses_,
          .creates = creates_,
          .evictions = evictions_};
}

}  // namespace paceline::pserver::sparse

#pragma once

// What one worker says of sparse tables to one server: the pull or push that is arriving, the unit's push,
// and pushes of earlier units that still wait for their update.
//
//   kPullRows, kRowIds                                       a pull: answered when the ids are there
//   kPushRows, kRowIds, [kRowPlaces]     sharing memory      a push: whole when all of that has come
//   kPushRows, kRowIds, kRowGradient...  over TCP
//
// Ids are checked as they come (they rise, and are this server's) and are this side's own; gradients are read
// in the worker's arena, or have come by TCP. Memory: what the largest pull and push needed, at most
// sparse::kMaxFloatsPerCall floats and sparse::kMaxRowsPerCall ids of each table, and one push for each unit
// that was put aside. One thread. INVALID_ARGUMENT: what came makes no sense; the worker is to be lost.

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "runtime/pserver/frame.h"
#include "runtime/pserver/grow_buffer.h"
#include "runtime/pserver/row_messages.h"
#include "runtime/pserver/sparse/rows.h"

namespace paceline::pserver {

class RowInbox {
 public:
  struct Options {
    std::span<const sparse::TableSpec> tables;  // outlive it
    int server = 0;                             // among
    int servers = 1;
    bool shared = false;
    std::span<const std::byte> arena;  // shared: the worker's
  };
  explicit RowInbox(const Options& options) : options_(options) {}

  // Frames, as FrameReceiver has them: one of the kinds above.
  static bool knows(FrameKind kind);
  absl::StatusOr<std::span<std::byte>> place(const FrameHeader& header, std::uint64_t at);
  absl::Status received(const FrameHeader& header, Bytes message);

  // A pull whose ids are there, until it is answered().
  struct Pull {
    std::int64_t number = 0;
    RowsMessage parts;
    GrowBuffer<sparse::RowId> ids;
    std::size_t floats = 0;  // of the answer
  };
  const Pull* pull() const { return pull_is_here_ ? &pull_ : nullptr; }
  void answered() { pull_is_here_ = false; }

  // ---- the unit's push ----
  // INVALID_ARGUMENT: rows of the unit are missing, or are another's.
  absl::Status check_commit(std::int64_t unit) const;
  std::size_t pushed_floats() const { return push_.here ? push_.floats : 0; }
  void drop() { push_.clear(); }  // it counts for nothing, or has been counted
  // It waits while the worker goes on: the worker has its memory back.
  void keep_aside();
  void drop_aside() { aside_used_ = 0; }
  // Appends the gradients of a table: those that were put aside, in the order of units; the unit's.
  void find_aside(std::uint32_t table, std::vector<sparse::GradientRows>& parts) const;
  void find(std::uint32_t table, std::vector<sparse::GradientRows>& parts) const;

 private:
  enum class Expects { kNothing, kPullIds, kPushIds, kPlaces, kGradient };
  struct Part {
    std::uint32_t table = 0;
    std::size_t first = 0, count = 0;  // ids
    const float* gradient = nullptr;
    std::size_t limit = 0;  // rows that may lie from `gradient` on
  };
  struct Push {
    bool here = false;  // announced
    bool placed = false;
    std::int64_t unit = -1;
    std::vector<Part> parts;
    GrowBuffer<sparse::RowId> ids;
    GrowBuffer<std::uint32_t> places;
    GrowBuffer<float> gradient;  // over TCP, and aside
    std::size_t floats = 0;      // of all parts
    std::size_t arrived = 0;     // over TCP: of them
    void clear() {
      here = placed = false;
      parts.clear();
    }
    void find(std::uint32_t table, std::vector<sparse::GradientRows>& to) const;
  };

  absl::Status announce_pull(const FrameHeader& header, Bytes message);
  absl::Status announce_push(const FrameHeader& header, Bytes message);
  absl::Status check_parts(std::size_t& rows, std::size_t& floats) const;
  absl::Status find_gradients();
  absl::Status check_ids(const sparse::TableSpec& spec, std::span<const sparse::RowId> ids) const;
  absl::Status ids_are_here();
  absl::Status places_are_here();
  std::size_t dim_of(std::uint32_t table) const { return options_.tables[table].dim; }
  // Memory of what is expected; empty: the frame is not.
  std::span<std::byte> expected(const FrameHeader& header);

  const Options options_;
  Expects expects_ = Expects::kNothing;
  RowsMessage message_;  // the one that is arriving
  bool pull_is_here_ = false;
  Pull pull_;
  Push push_;
  std::vector<Push> aside_;  // [0, aside_used_); the others keep their memory
  std::size_t aside_used_ = 0;
};

}  // namespace paceline::pserver

#pragma once

// Prepares the batch that will probably be needed next, while the current one is trained on: for members
// whose units are given out by somebody else (parameter servers). What is needed need not be what was
// expected.
//
// One consumer thread calls expect() and take(); stop() may be called by any thread. The data set is shared
// and immutable. Two batches at most: the one that was taken and the one that is expected.

#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "runtime/data/batch_slot.h"
#include "runtime/data/dataset.h"

namespace paceline::data {

struct UnitPrefetcherOptions {
  std::int64_t max_rows = 0;  // > 0: no unit has more rows
  bool ahead = true;          // false: take() prepares everything itself
  std::int64_t inline_below_bytes = kInlineBatchBytes;
};

class UnitPrefetcher {
 public:
  // `plan` is called by one thread at a time per unit, and by two at once for different units.
  UnitPrefetcher(std::shared_ptr<const Dataset> dataset, BatchPlan plan,
                 const UnitPrefetcherOptions& options);
  ~UnitPrefetcher();  // stops and joins
  UnitPrefetcher(const UnitPrefetcher&) = delete;
  UnitPrefetcher& operator=(const UnitPrefetcher&) = delete;

  // `unit` will probably be taken next: the thread prepares it. In place of an earlier one, unless the thread
  // is at that just now. Never waits.
  void expect(std::int64_t unit);
  // The batch of `unit`, whose memory is valid until the next call. One that nobody prepared is prepared
  // here. CANCELLED after stop(), DEADLINE_EXCEEDED after `timeout` (the call may be repeated), or the data
  // set's error.
  absl::StatusOr<Batch> take(std::int64_t unit, Duration timeout);
  void stop();

  bool prepares_inline() const { return inline_; }
  // Batches that were there, or being prepared, when they were taken.
  std::int64_t hits() const { return hits_; }

 private:
  enum class Stage : std::uint8_t { kIdle, kExpected, kUnderWay, kReady };
  struct State {
    Stage stage = Stage::kIdle;
    std::int64_t unit = -1;
    bool stopped = false;
  };
  void run();
  absl::StatusOr<Batch> batch_of(const BatchSlot& slot, std::int64_t unit) const;

  const std::shared_ptr<const Dataset> dataset_;
  const BatchPlan plan_;
  const bool inline_;
  std::vector<BatchSlot> slots_;  // the taken one at taken_, the other the thread's from kExpected to kReady
  std::size_t taken_ = 0;         // the consumer's; the thread reads it while it is kUnderWay
  std::int64_t hits_ = 0;

  Guarded<State> state_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace paceline::data

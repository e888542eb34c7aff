#pragma once

// Prepares the next batches while the current one is trained on. Batches come in the order of the steps, and
// their content is the same whether they are prepared ahead or in the caller: a batch is a pure function of
// its step.
//
// One consumer thread calls next(); stop() may be called by any thread. The data set is shared and immutable.
// The queue is bounded by `depth`; nothing is allocated after construction (but what `plan` and the data set
// do themselves).

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

inline constexpr int kMaxPrefetchDepth = 64;

struct PrefetcherOptions {
  std::int64_t first_step = 0;
  std::int64_t end_step = 0;  // one past the last step
  std::int64_t max_rows = 0;  // > 0: no step has more rows
  int depth = 2;              // batches ahead; 0: prepared by the caller; at most kMaxPrefetchDepth
  std::int64_t inline_below_bytes = kInlineBatchBytes;
};

class Prefetcher {
 public:
  // Called in the order of the steps, by one thread at a time.
  using Plan = BatchPlan;

  Prefetcher(std::shared_ptr<const Dataset> dataset, Plan plan, const PrefetcherOptions& options);
  ~Prefetcher();  // stops and joins
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // The batch of the next step; its memory is valid until the next call. OUT_OF_RANGE after the last step,
  // CANCELLED after stop(), DEADLINE_EXCEEDED after `timeout` (the call may be repeated), or the data set's
  // error, which is final.
  absl::StatusOr<Batch> next(Duration timeout);

  // Wakes a waiting next(); the thread ends after the batch that it is at.
  void stop();

  bool prepares_inline() const { return inline_; }

 private:
  // Slots are used in turn: slot step % count. Those in [released, produced) belong to the consumer, the
  // others to the thread.
  struct Progress {
    std::int64_t produced;
    std::int64_t released;
    bool stopped = false;
  };

  void prepare(std::int64_t step);
  void run();
  absl::Status wait_for(std::int64_t step, Duration timeout);
  BatchSlot& slot_of(std::int64_t step) { return slots_[static_cast<std::size_t>(step) % slots_.size()]; }

  const std::shared_ptr<const Dataset> dataset_;
  const Plan plan_;
  const PrefetcherOptions options_;
  const bool inline_;
  std::vector<BatchSlot> slots_;
  // The consumer's.
  std::int64_t next_step_;

  Guarded<Progress> progress_;
  std::jthread thread_;  // last: it uses the others
};

}  // namespace paceline::data

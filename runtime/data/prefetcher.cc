#include "runtime/data/prefetcher.h"

#include <algorithm>

#include "base/check.h"
#include "base/status.h"

namespace paceline::data {

namespace {

// The loader waits for room without a deadline of its own: only stop(), which the destructor calls, or the
// consumer end its wait.
constexpr Duration kLong = std::chrono::hours(24);

}  // namespace

Prefetcher::Prefetcher(std::shared_ptr<const Dataset> dataset, Plan plan, const PrefetcherOptions& options)
    : dataset_(std::move(dataset)),
      plan_(std::move(plan)),
      options_(options),
      inline_(options.depth == 0 ||
              batch_bytes(dataset_->shape(), options.max_rows) < options.inline_below_bytes),
      next_step_(options.first_step),
      progress_(Progress{options.first_step, options.first_step}) {
  PL_CHECK(options.depth >= 0 && options.depth <= kMaxPrefetchDepth, "the queue is bounded");
  PL_CHECK(options.max_rows > 0 && options.first_step >= 0, "a prefetcher knows its batches");
  const int slots = inline_ ? 1 : options.depth + 1;
  slots_.reserve(static_cast<std::size_t>(slots));
  for (int i = 0; i < slots; ++i) slots_.emplace_back(dataset_->shape(), options.max_rows);
  if (!inline_) thread_ = std::jthread([this] { run(); });
}

Prefetcher::~Prefetcher() {
  stop();
}

void Prefetcher::stop() {
  progress_.lock()->stopped = true;
}

void Prefetcher::prepare(std::int64_t step) {
  slot_of(step).prepare(*dataset_, plan_, step);
}

void Prefetcher::run() {
  const auto count = static_cast<std::int64_t>(slots_.size());
  for (std::int64_t step = options_.first_step; step < options_.end_step; ++step) {
    bool room = false;
    while (!room) {
      auto progress = progress_.lock_when(
          [&](const Progress& p) { return p.stopped || step - p.released < count; }, kLong, &room);
      if (progress->stopped) return;
    }
    prepare(step);
    const bool failed = !slot_of(step).status().ok();
    progress_.lock()->produced = step + 1;
    if (failed) return;
  }
}

absl::Status Prefetcher::wait_for(std::int64_t step, Duration timeout) {
  bool held = false;
  auto progress =
      progress_.lock_when([&](const Progress& p) { return p.stopped || p.produced > step; }, timeout, &held);
  if (progress->stopped) return absl::CancelledError("the input was stopped");
  if (!held) return absl::DeadlineExceededError(str_cat("step ", step, ": the batch wasn't ready in time"));
  return absl::OkStatus();
}

absl::StatusOr<Batch> Prefetcher::next(Duration timeout) {
  if (next_step_ >= options_.end_step) {
    return absl::OutOfRangeError(str_cat("the input ends before step ", options_.end_step));
  }
  if (inline_) {
    if (progress_.lock()->stopped) return absl::CancelledError("the input was stopped");
    prepare(next_step_);
  } else {
    // The caller is done with the batch before this one.
    progress_.lock()->released = next_step_;
    PL_RETURN_IF_ERROR(wait_for(next_step_, timeout));
  }

  const BatchSlot& slot = slot_of(next_step_);
  if (!slot.status().ok()) return with_context(slot.status(), str_cat("input of step ", next_step_));
  ++next_step_;
  return slot.batch();
}

}  // namespace paceline::data

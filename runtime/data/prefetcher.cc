#include "runtime/data/prefetcher.h"

#include <algorithm>

#include "base/check.h"
#include "base/status.h"

namespace paceline::data {

namespace {

// The loader waits for room without a deadline of its own: only stop(), which the destructor calls, or the
// consumer end its wait.
constexpr Duration kLong = std::chrono::hours(24);

std::int64_t batch_bytes(const SampleShape& shape, std::int64_t rows) {
  const std::int64_t label_bytes = shape.labels * static_cast<std::int64_t>(sizeof(std::int32_t));
  return rows * (shape.elements() * static_cast<std::int64_t>(sizeof(float)) + label_bytes);
}

}  // namespace

Prefetcher::Prefetcher(std::shared_ptr<const Dataset> dataset, Plan plan, const Clock& clock,
                       const PrefetcherOptions& options)
    : dataset_(std::move(dataset)),
      plan_(std::move(plan)),
      clock_(clock),
      options_(options),
      inline_(options.depth == 0 ||
              batch_bytes(dataset_->shape(), options.max_rows) < options.inline_below_bytes),
      slots_(static_cast<std::size_t>(inline_ ? 1 : options.depth + 1)),
      next_step_(options.first_step),
      progress_(Progress{options.first_step, options.first_step}) {
  PL_CHECK(options.depth >= 0 && options.depth <= kMaxPrefetchDepth, "the queue is bounded");
  PL_CHECK(options.max_rows > 0 && options.first_step >= 0, "a prefetcher knows its batches");
  const auto rows = static_cast<std::size_t>(options.max_rows);
  const SampleShape& shape = dataset_->shape();
  const std::size_t elements = rows * static_cast<std::size_t>(shape.elements());
  for (Slot& slot : slots_) {
    slot.indices.reserve(rows);
    if (shape.kind == InputKind::kFloats) {
      slot.inputs.resize(elements);
    } else {
      slot.tokens.resize(elements);
    }
    slot.labels.resize(rows * static_cast<std::size_t>(shape.labels));
  }
  if (!inline_) thread_ = std::jthread([this] { run(); });
}

Prefetcher::~Prefetcher() {
  stop();
}

void Prefetcher::stop() {
  progress_.lock()->stopped = true;
}

void Prefetcher::prepare(std::int64_t step) {
  Slot& slot = slot_of(step);
  const std::uint64_t augmentation_seed = plan_(step, slot.indices);
  const std::size_t rows = slot.indices.size();
  PL_CHECK(rows <= static_cast<std::size_t>(options_.max_rows), "no step has more rows than max_rows");
  const SampleShape& shape = dataset_->shape();
  const std::size_t elements = rows * static_cast<std::size_t>(shape.elements());
  const bool floats = shape.kind == InputKind::kFloats;
  BatchView view;
  view.inputs = std::span(slot.inputs).first(floats ? elements : 0);
  view.tokens = std::span(slot.tokens).first(floats ? 0 : elements);
  view.labels = std::span(slot.labels).first(rows * static_cast<std::size_t>(shape.labels));
  slot.status = rows == 0 ? absl::OkStatus() : dataset_->fetch(slot.indices, augmentation_seed, view);
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
    const bool failed = !slot_of(step).status.ok();
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
  const TimePoint begin = clock_.now();
  if (inline_) {
    if (progress_.lock()->stopped) return absl::CancelledError("the input was stopped");
    prepare(next_step_);
  } else {
    // The caller is done with the batch before this one.
    progress_.lock()->released = next_step_;
    PL_RETURN_IF_ERROR(wait_for(next_step_, timeout));
  }
  last_wait_ = clock_.now() - begin;

  const Slot& slot = slot_of(next_step_);
  if (!slot.status.ok()) return with_context(slot.status, str_cat("input of step ", next_step_));
  const std::size_t rows = slot.indices.size();
  const SampleShape& shape = dataset_->shape();
  const std::size_t elements = rows * static_cast<std::size_t>(shape.elements());
  Batch batch;
  batch.step = next_step_++;
  batch.indices = slot.indices;
  if (shape.kind == InputKind::kFloats) {
    batch.inputs = std::span(slot.inputs).first(elements);
  } else {
    batch.tokens = std::span(slot.tokens).first(elements);
  }
  batch.labels = std::span(slot.labels).first(rows * static_cast<std::size_t>(shape.labels));
  return batch;
}

}  // namespace paceline::data

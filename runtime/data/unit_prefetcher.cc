#include "runtime/data/unit_prefetcher.h"

#include <utility>

#include "base/check.h"
#include "base/status.h"

namespace paceline::data {

namespace {
constexpr Duration kLong = std::chrono::hours(24);  // only stop() or the consumer end the thread's wait
}  // namespace

UnitPrefetcher::UnitPrefetcher(std::shared_ptr<const Dataset> dataset, BatchPlan plan,
                               const UnitPrefetcherOptions& options)
    : dataset_(std::move(dataset)),
      plan_(std::move(plan)),
      inline_(!options.ahead ||
              batch_bytes(dataset_->shape(), options.max_rows) < options.inline_below_bytes) {
  PL_CHECK(options.max_rows > 0, "a prefetcher knows its batches");
  const int slots = inline_ ? 1 : 2;
  slots_.reserve(static_cast<std::size_t>(slots));
  for (int i = 0; i < slots; ++i) slots_.emplace_back(dataset_->shape(), options.max_rows);
  if (!inline_) thread_ = std::jthread([this] { run(); });
}

UnitPrefetcher::~UnitPrefetcher() {
  stop();
}

void UnitPrefetcher::stop() {
  state_.lock()->stopped = true;
}

void UnitPrefetcher::run() {
  while (true) {
    std::int64_t unit = -1;
    std::size_t spare = 0;
    {
      bool wanted = false;
      auto state = state_.lock_when([](const State& s) { return s.stopped || s.stage == Stage::kExpected; },
                                    kLong, &wanted);
      if (state->stopped) return;
      if (!wanted) continue;
      state->stage = Stage::kUnderWay;
      unit = state->unit;
      spare = 1 - taken_;
    }
    slots_[spare].prepare(*dataset_, plan_, unit);
    state_.lock()->stage = Stage::kReady;
  }
}

void UnitPrefetcher::expect(std::int64_t unit) {
  if (inline_ || unit < 0) return;
  auto state = state_.lock();
  if (state->stage == Stage::kUnderWay || (state->stage == Stage::kReady && state->unit == unit)) return;
  state->unit = unit;
  state->stage = Stage::kExpected;
}

absl::StatusOr<Batch> UnitPrefetcher::take(std::int64_t unit, Duration timeout) {
  bool there = false;
  {
    auto state = state_.lock();
    if (state->stopped) return absl::CancelledError("the input was stopped");
    if (state->unit == unit && state->stage == Stage::kExpected) state->stage = Stage::kIdle;
    there = state->unit == unit && state->stage != Stage::kIdle;
  }
  if (!there) {  // the thread may be at another one, in the other slot
    slots_[taken_].prepare(*dataset_, plan_, unit);
    return batch_of(slots_[taken_], unit);
  }
  bool held = false;
  {
    auto state = state_.lock_when([](const State& s) { return s.stopped || s.stage == Stage::kReady; },
                                  timeout, &held);
    if (state->stopped) return absl::CancelledError("the input was stopped");
    if (!held) return absl::DeadlineExceededError(str_cat("unit ", unit, ": the batch wasn't ready in time"));
    state->stage = Stage::kIdle;
    taken_ = 1 - taken_;
  }
  ++hits_;
  return batch_of(slots_[taken_], unit);
}

absl::StatusOr<Batch> UnitPrefetcher::batch_of(const BatchSlot& slot, std::int64_t unit) const {
  if (!slot.status().ok()) return with_context(slot.status(), str_cat("input of unit ", unit));
  return slot.batch();
}

}  // namespace paceline::data

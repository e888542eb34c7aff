#include "runtime/trainer/device_saver.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace paceline::trainer {

DeviceSaver::DeviceSaver(const v1::TrainingSpec& spec, const Clock& clock, Replica& replica,
                         StopRequest& stop, ProgressFileStore& files)
    : clock_(clock),
      replica_(replica),
      stop_(stop),
      store_(files, spec.checkpoint().directory(), std::max<std::int64_t>(1, spec.checkpoint().keep())) {}

DeviceSaver::~DeviceSaver() {
  if (thread_.joinable()) thread_.join();
  if (state_ == State::kWriting) replica_.take_back();
}

void DeviceSaver::fail(const absl::Status& status) {
  *done_.lock() = SaveOutcome{status, step_, 0, clock_.now() - began_, {}};
}

void DeviceSaver::begin() {
  PL_CHECK(!busy(), "one checkpoint at a time");
  began_ = clock_.now();
  step_ = replica_.step();
  saving_ = std::make_unique<StopRequest::Saving>(stop_);
  state_ = State::kCopying;
  const absl::Status begun = replica_.begin_snapshot();
  if (!begun.ok()) fail(begun);
  held_up_ = clock_.now() - began_;
  stall_ += held_up_;
}

// The copy is there, or is waited for.
void DeviceSaver::write() {
  const TimePoint from = clock_.now();
  auto state = replica_.finish_snapshot();
  held_up_ += clock_.now() - from;
  stall_ += clock_.now() - from;
  if (!state.ok()) return fail(state.status());
  state_ = State::kWriting;
  if (thread_.joinable()) thread_.join();  // it has said what came of it
  thread_ = std::jthread([this, state = *std::move(state)] {
    std::uint64_t bytes = 0;
    for (const auto& tensor : state.snapshot.tensors) bytes += tensor.data.size();
    absl::Status saved = store_.save(state.snapshot);
    *done_.lock() = SaveOutcome{std::move(saved), step_, bytes, clock_.now() - began_, {}};
  });
}

std::optional<SaveOutcome> DeviceSaver::finish() {
  auto done = std::exchange(*done_.lock(), std::nullopt);
  if (!done.has_value()) return std::nullopt;
  if (state_ == State::kWriting) replica_.take_back();
  state_ = State::kIdle;
  saving_.reset();
  done->stall = held_up_;
  return done;
}

std::optional<SaveOutcome> DeviceSaver::poll() {
  if (!busy()) return std::nullopt;
  auto done = finish();
  if (done.has_value() || state_ != State::kCopying) return done;
  write();
  return finish();
}

std::optional<SaveOutcome> DeviceSaver::wait() {
  auto done = poll();
  if (done.has_value() || !busy()) return done;
  const TimePoint from = clock_.now();
  if (thread_.joinable()) thread_.join();
  held_up_ += clock_.now() - from;
  stall_ += clock_.now() - from;
  return finish();
}

}  // namespace paceline::trainer

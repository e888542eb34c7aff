#include "runtime/trainer/server_saver.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/trainer/limits.h"

namespace paceline::trainer {

ServerSaver::~ServerSaver() {
  if (thread_.joinable()) thread_.join();
}

void ServerSaver::begin(std::shared_ptr<pserver::Client> client, std::int64_t step) {
  PL_CHECK(!busy_, "one checkpoint at a time");
  began_ = clock_.now();
  busy_ = true;
  const absl::Status begun = client->begin_snapshot();
  if (!begun.ok()) {
    *done_.lock() = SaveOutcome{begun, step, 0, {}, {}};
    return;
  }
  if (thread_.joinable()) thread_.join();  // it has said what came of it
  thread_ = std::jthread([this, step, client = std::move(client)] {
    const StopRequest::Saving saving(stop_);
    absl::Status status = take(*client, kSaveLimit);
    const std::int64_t taken = status.ok() ? position_.step : step;
    if (status.ok()) status = save();
    *done_.lock() = SaveOutcome{std::move(status), taken, bytes_, clock_.now() - began_, {}};
  });
}

std::optional<SaveOutcome> ServerSaver::poll() {
  if (!busy_) return std::nullopt;
  auto done = std::exchange(*done_.lock(), std::nullopt);
  busy_ = !done.has_value();
  return done;
}

std::optional<SaveOutcome> ServerSaver::wait() {
  if (!busy_) return std::nullopt;
  const TimePoint from = clock_.now();
  if (thread_.joinable()) thread_.join();  // ends with the client, or at the limits of collecting
  auto done = poll();
  if (done.has_value()) done->stall = clock_.now() - from;
  return done;
}

absl::Status ServerSaver::collect(pserver::Client& client) {
  PL_CHECK(!busy_, "one checkpoint at a time");
  began_ = clock_.now();
  PL_RETURN_IF_ERROR(client.begin_snapshot());
  PL_RETURN_IF_ERROR(client.flush(Deadline::after(began_, kLastServiceLimit)));
  return take(client, kLastServiceLimit);
}

absl::Status ServerSaver::take(pserver::Client& client, Duration limit) {
  weights_.resize(replica_.layout().elements);
  std::vector<std::span<float>> optimizer;
  for (const optimizer::StateVector& state : replica_.optimizer_state()) optimizer.push_back(state.values);
  PL_ASSIGN_OR_RETURN(const pserver::SnapshotInfo info,
                      client.take_snapshot(weights_, optimizer, Deadline::after(clock_.now(), limit)));
  position_ = {info.step, info.optimizer_steps, info.units};
  return absl::OkStatus();
}

absl::Status ServerSaver::save() {
  checkpoint::CheckpointStore store(spec_.checkpoint().directory(),
                                    std::max<std::int64_t>(1, spec_.checkpoint().keep()));
  const NamedState state = replica_.format().name({weights_, replica_.optimizer_state()}, position_);
  bytes_ = 0;
  for (const auto& tensor : state.snapshot.tensors) bytes_ += tensor.data.size();
  return store.save(state.snapshot);
}

SaveOutcome ServerSaver::write() {
  SaveOutcome outcome;
  outcome.status = save();
  outcome.step = position_.step;
  outcome.bytes = bytes_;
  outcome.took = outcome.stall = clock_.now() - began_;
  return outcome;
}

}  // namespace paceline::trainer

#include "runtime/trainer/server_state.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "runtime/trainer/limits.h"
#include "runtime/trainer/table_specs.h"

namespace paceline::trainer {

ServerState::ServerState(const v1::TrainingSpec& spec, const Clock& clock, StopRequest& stop,
                         ProgressFileStore& files, Report report)
    : spec_(spec),
      clock_(clock),
      stop_(stop),
      files_(files),
      report_(std::move(report)),
      has_tables_(!table_specs(spec).empty()) {}

void ServerState::begins_with(StatePosition position, std::unique_ptr<TablePartsReader> rows) {
  position_ = std::move(position);
  saved_rows_ = std::move(rows);
}

absl::Status ServerState::give(pserver::Client& client, Replica& replica, Generation view, Step total_steps) {
  if (!position_.has_value()) {
    return absl::InternalError(
        str_cat("view ", view.value,
                " begins without the servers' state, which was lost with the view before "
                "it; --resume goes on from the newest checkpoint"));
  }
  pserver::InitialState state;
  state.weights = replica.weights();
  for (const optimizer::StateVector& vector : replica.optimizer_state()) {
    state.optimizer.push_back({std::string(vector.name), vector.values});
  }
  state.optimizer_steps = position_->optimizer_steps;
  state.start = {position_->units, position_->step, total_steps};
  state.rows = saved_rows_.get();
  const absl::Status given = client.initialize(state, Deadline::after(clock_.now(), kLoadLimit));
  // Rows are read once: of a state whose rows went in part, the next view would begin with the rest.
  if (given.ok() || saved_rows_ != nullptr) position_.reset();
  saved_rows_.reset();
  return given;
}

absl::Status ServerState::open(Replica& replica) {
  if (saver_ != nullptr) return absl::OkStatus();
  PL_RETURN_IF_ERROR(replica.make_optimizer());
  saver_ = std::make_unique<ServerSaver>(spec_, clock_, replica, stop_, files_);
  return absl::OkStatus();
}

void ServerState::look() {
  if (saver_ != nullptr) report(saver_->poll());
}

void ServerState::settle() {
  if (saver_ != nullptr) report(saver_->wait());
}

void ServerState::begin_save(std::shared_ptr<pserver::Client> client, Step step) {
  saver_->begin(std::move(client), step);
}

SaveOutcome ServerState::write() {
  SaveOutcome saved = saver_->write();
  stall_ += saved.stall;
  report_(saved);
  return saved;
}

void ServerState::save_last(pserver::Client& client, Step step, Duration limit) {
  settle();
  const absl::Status collected = saver_->collect(client, limit);
  if (!collected.ok()) return report_(SaveOutcome{collected, step, 0, {}, {}});
  collected_step_ = saver_->position().step;
  write();
}

absl::Status ServerState::take(pserver::Client& client, Replica& replica, Step step, Duration limit) {
  settle();
  if (has_tables_ && spec_.checkpoint().directory().empty()) {
    return absl::FailedPreconditionError(
        "another view begins with the rows of the model's tables, which have no place to wait: give "
        "spec.checkpoint.location");
  }
  const absl::Status collected = saver_->collect(client, limit);
  if (!collected.ok()) {
    if (has_tables_) report_(SaveOutcome{collected, step, 0, {}, {}});
    return collected;
  }
  if (has_tables_) PL_RETURN_IF_ERROR(keep_rows());
  std::ranges::copy(saver_->collected(), replica.weights().begin());
  position_ = saver_->position();  // now the next view may begin with it
  return absl::OkStatus();
}

// The rows that the saver collected wait for the next view's servers in a checkpoint.
absl::Status ServerState::keep_rows() {
  const SaveOutcome saved = write();
  auto rows = saved.status.ok() ? saver_->written_rows() : saved.status;
  if (!rows.ok()) {  // storage's fault, whatever the code: no peer is to blame
    return absl::InternalError(str_cat("the rows of the model's tables couldn't be kept for the next view: ",
                                       rows.status().message()));
  }
  collected_step_ = saver_->position().step;
  saved_rows_ = *std::move(rows);
  return absl::OkStatus();
}

absl::StatusOr<std::string> ServerState::write_model(pserver::Client& client, const std::string& folder,
                                                     Duration limit) {
  settle();
  return saver_->write_model(client, folder, limit);
}

}  // namespace paceline::trainer

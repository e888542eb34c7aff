// The trainer's part with sparse tables: their rows lie on the servers, and in files, but never all of them
// in this process.

#include <algorithm>

#include "base/status.h"
#include "runtime/trainer/limits.h"
#include "runtime/trainer/server_session.h"
#include "runtime/trainer/trainer.h"

namespace paceline::trainer {

absl::Status Trainer::open_tables() {
  if (!workload_.sparse.has_value()) return absl::OkStatus();
  if (!servers_) {
    return absl::InvalidArgumentError(
        "the model has sparse tables, which lie on parameter servers: give strategy.type: ParameterServer");
  }
  const std::vector<std::int64_t> units = unit_rows(spec_);
  const std::int64_t most = std::max<std::int64_t>(1, *std::max_element(units.begin(), units.end()));
  PL_ASSIGN_OR_RETURN(rows_, SparseRows::create(*workload_.sparse, most));
  return rows_->place_gradients(parts_.fabric.arena());
}

// What the saver collected waits for the next view's servers in a checkpoint.
absl::Status Trainer::keep_rows() {
  if (tables_.empty()) return absl::OkStatus();
  const SaveOutcome saved = saver_->write();
  tell_saved(saved);
  PL_RETURN_IF_ERROR(saved.status);
  const checkpoint::CheckpointStore store(spec_.checkpoint().directory(), 1);
  PL_ASSIGN_OR_RETURN(const checkpoint::LoadedCheckpoint loaded, store.load_latest());
  if (loaded.progress.step != saved.step) {
    return absl::InternalError(str_cat("the checkpoint of step ", saved.step, " was just saved, and ",
                                       loaded.name, " is the newest"));
  }
  PL_ASSIGN_OR_RETURN(saved_rows_, TablePartsReader::open(store, loaded, tables_));
  return absl::OkStatus();
}

absl::Status Trainer::write_model_tables() {
  if (tables_.empty()) return absl::OkStatus();
  adopt_servers(Turns::kOver);
  tell_saved(saver_->wait());
  PL_RETURN_IF_ERROR(saver_->write_tables(*client_, spec_.checkpoint().model_directory(), kSaveLimit));
  std::ranges::copy(saver_->collected(), replica_->weights().begin());  // that belong to these rows
  return absl::OkStatus();
}

}  // namespace paceline::trainer

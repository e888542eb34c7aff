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
  PL_ASSIGN_OR_RETURN(rows_, SparseRows::create(*workload_.sparse, most, Purpose::kTraining));
  return rows_->place_gradients(parts_.fabric.arena());
}

// What the saver collected waits for the next view's servers in a checkpoint.
absl::Status Trainer::keep_rows() {
  if (tables_.empty()) return absl::OkStatus();
  const SaveOutcome saved = saver_->write();
  saving_ns_ += saved.stall.count();
  report_saved(saved);
  auto rows = saved.status.ok() ? saver_->written_rows() : saved.status;
  if (!rows.ok()) {  // storage's fault, whatever the code: no peer is to blame
    return absl::InternalError(str_cat("the rows of the model's tables couldn't be kept for the next view: ",
                                       rows.status().message()));
  }
  collected_step_ = saver_->position().step;
  saved_rows_ = *std::move(rows);
  return absl::OkStatus();
}

absl::StatusOr<std::string> Trainer::write_model_files() {
  const std::string& folder = spec_.checkpoint().model_directory();
  if (tables_.empty()) return replica_->write_model(files_, folder);
  adopt_servers(Turns::kOver);
  report_saved(saver_->wait());
  return saver_->write_model(*client_, folder, kSaveLimit);
}

}  // namespace paceline::trainer

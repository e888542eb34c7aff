#pragma once

// The state of parameter servers, as worker 0 has it: what a view's servers begin with, checkpoints of it
// while they train, and what is taken back when the view or the job ends.
//
//   nothing -> begins_with()  a state is in the replica, and its tables' rows are in a checkpoint
//           -> give()         the servers hold it, and nobody else
//           -> take()         it is in the replica again, for the next view's servers
//
// The training thread's; saves beside the training have a thread of their own (server_saver.h).

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/ids.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/pserver/client.h"
#include "runtime/trainer/progress_file_store.h"
#include "runtime/trainer/replica.h"
#include "runtime/trainer/save_outcome.h"
#include "runtime/trainer/server_saver.h"
#include "runtime/trainer/state_format.h"
#include "runtime/trainer/stop_request.h"
#include "runtime/trainer/table_parts.h"

namespace paceline::trainer {

class ServerState {
 public:
  // Hears how each save ended.
  using Report = std::function<void(const SaveOutcome&)>;

  // All outlive it.
  ServerState(const v1::TrainingSpec& spec, const Clock& clock, StopRequest& stop, ProgressFileStore& files,
              Report report);

  // The replica holds the state at this position. `rows`: of the tables of a checkpoint; null: they begin
  // empty.
  void begins_with(StatePosition position, std::unique_ptr<TablePartsReader> rows = nullptr);
  // The servers get it, once. INTERNAL: it was lost with the view before; the client's errors.
  absl::Status give(pserver::Client& client, Replica& replica, Generation view, Step total_steps);
  // Whether take() has nothing to do: the next view may begin with what is here.
  bool is_here() const { return position_.has_value(); }

  // Saves are possible from now on, to and from the optimizer's vectors of this replica, which outlives this.
  absl::Status open(Replica& replica);

  // --- after open(), before which nothing is under way ---
  bool busy() const { return saver_ != nullptr && saver_->busy(); }
  // A save under way is reported once it is done, or waited for.
  void look();
  void settle();
  // REQUIRES: open(); not busy.
  void begin_save(std::shared_ptr<pserver::Client> client, Step step);
  // REQUIRES of all: open(). They wait for the save under way first, and then as long as some of the state
  // comes within `limit`.
  // Saves the state that the servers end with; `step` is where this worker is.
  void save_last(pserver::Client& client, Step step, Duration limit);
  // Into the replica, and where the model has tables into a checkpoint. FAILED_PRECONDITION: there is no
  // place for one; INTERNAL: it can't be written; the client's errors.
  absl::Status take(pserver::Client& client, Replica& replica, Step step, Duration limit);
  // The final model with its tables; its path.
  absl::StatusOr<std::string> write_model(pserver::Client& client, const std::string& folder, Duration limit);

  // The newest step of the servers' state that an end of a view, or of the job, has saved; 0: none.
  Step collected_step() const { return collected_step_; }
  // How long the training thread has saved since it was asked last.
  Duration take_stall() { return std::exchange(stall_, Duration::zero()); }

 private:
  absl::Status keep_rows();
  void report(const std::optional<SaveOutcome>& saved) const {
    if (saved.has_value()) report_(*saved);
  }
  SaveOutcome write();

  const v1::TrainingSpec& spec_;
  const Clock& clock_;
  StopRequest& stop_;
  ProgressFileStore& files_;
  const Report report_;
  const bool has_tables_;
  std::optional<StatePosition> position_;         // of the state in the replica, until the servers hold it
  std::unique_ptr<TablePartsReader> saved_rows_;  // of that state; null: no tables, or they begin empty
  std::unique_ptr<ServerSaver> saver_;
  Step collected_step_ = 0;
  Duration stall_{};
};

}  // namespace paceline::trainer

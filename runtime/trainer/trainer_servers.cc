// The trainer's part with parameter servers: they hold the state, worker 0 gives it to them, and takes it for
// checkpoints.

#include <algorithm>

#include "base/check.h"
#include "base/status.h"
#include "runtime/trainer/limits.h"
#include "runtime/trainer/server_session.h"
#include "runtime/trainer/trainer.h"

namespace paceline::trainer {

namespace {

// How long worker 0 collects the last state. The servers of a job that is finished, or goes on in another
// view, serve until it leaves; those of one that has failed end this wait by their own limit (ServerMember).
Duration last_save_limit(Ending ending) {
  const bool goes_well = ending == Ending::kFinished || ending == Ending::kNone;
  return goes_well ? kSaveLimit : kStoppedServiceLimit;
}

}  // namespace

absl::Status Trainer::connect_servers() {
  PL_CHECK(parts_.connect_servers != nullptr, "a job with parameter servers needs a way to reach them");
  pserver::ClientOptions options;
  for (const v1::ViewMember& member : view_.members()) {
    ++(member.role() == v1::ROLE_PS ? options.servers : options.workers);
  }
  options.slice_bytes = static_cast<std::size_t>(spec_.parameter_server().slice_bytes());
  options.tables = tables_;
  PL_ASSIGN_OR_RETURN(client_, parts_.connect_servers(parts_.fabric, group_, options, replica_->layout(),
                                                      replica_->weights(), replica_->gradient(), parts_.clock,
                                                      Deadline::after(now(), kLoadLimit)));
  adopt_servers(Turns::kTaken);
  parts_.membership.progress().set_extra(
      [client = client_](v1::Heartbeat& beat) { *beat.mutable_staleness() = client->staleness(); });
  return absl::OkStatus();
}

// When the membership or the patience with a stop ends, no more turns are taken, and the servers are asked
// for their state; where that is being collected already (kOver) it goes on, as with all-reduce. A state of
// which a part is lost, or that is wrong, nobody waits for: a server that hangs would never send its part.
void Trainer::adopt_servers(Turns turns) {
  links_.adopt(group_.generation, [this, client = client_, turns](const absl::Status& why) {
    if (absl::IsDataLoss(parts_.membership.status())) {
      client->close(why);
    } else if (turns == Turns::kTaken) {
      client->interrupt();
    }
  });
}

absl::Status Trainer::initialize_servers() {
  if (group_.rank != 0) return absl::OkStatus();
  return server_state_.give(*client_, *replica_, group_.generation, machine_.plan().total_steps);
}

absl::Status Trainer::open_server_session() {
  if (!workload_.device_id.empty())
    parts_.logger.info(
        "gradients go by way of the host's memory to the parameter servers, whose steps are processors'");
  PL_RETURN_IF_ERROR(compile_for(unit_rows(spec_)));
  const ServerSessionParts parts{group_.rank,          spec_,    machine_.plan(), parts_.clock, *replica_,
                                 programs_.training(), *client_, rows_.get()};
  PL_ASSIGN_OR_RETURN(session_,
                      ServerSession::open(parts, workload_.data.train, Deadline::after(now(), kLoadLimit)));
  return group_.rank == 0 ? server_state_.open(*replica_) : absl::OkStatus();
}

// Where an update needs not everybody's gradient, the others go on; where too few are left, the coordinator
// ends the job.
bool Trainer::may_leave_alone() const {
  return servers_ && group_.rank != 0 && !updates_need_everybody(spec_.parameter_server());
}

// While training goes on it only begins; at its end all of it is done here. What a drained view with tables
// leaves is written for the next view's servers (keep_rows()), and that is its checkpoint.
Decision Trainer::save_from_servers() {
  if (machine_.ending() == Ending::kNone && agreed_.drain && !tables_.empty()) {
    const absl::Status taken = take_state_from_servers();
    return taken.ok() ? machine_.checkpointed(now()) : on_error(taken);
  }
  if (machine_.ending() == Ending::kNone && !agreed_.drain) {
    server_state_.begin_save(client_, machine_.step());
    return machine_.checkpointed(now());
  }
  const StopRequest::Saving saving(parts_.stop);
  member::Progress& progress = parts_.membership.progress();
  progress.set_phase(v1::CHECKPOINTING);
  adopt_servers(Turns::kOver);
  server_state_.save_last(*client_, machine_.step(), last_save_limit(machine_.ending()));
  saving_ns_ += server_state_.take_stall().count();
  progress.set_phase(v1::TRAINING);
  return machine_.checkpointed(now());
}

void Trainer::report_saved(const SaveOutcome& saved) {
  const std::string& folder = spec_.checkpoint().directory();
  v1::CheckpointResult result;
  result.set_step(saved.step);
  result.set_path(checkpoint::checkpoint_path(folder, saved.step));
  result.set_stall_ns(saved.stall.count());
  if (saved.status.ok()) {
    result.set_bytes(saved.bytes);
    outcome_.checkpoint_path = result.path();
    parts_.logger.info(str_cat("checkpoint of step ", saved.step, " in ", folder, " after ",
                               format_duration(saved.took), " beside the training"));
  } else {
    result.set_error(std::string(saved.status.message()));
    parts_.logger.error(str_cat("no checkpoint of step ", saved.step, ": ", saved.status.message()));
  }
  parts_.membership.report_checkpoint(result);
}

// For the next view, whose servers know nothing; once, where that was the view's checkpoint too.
absl::Status Trainer::take_state_from_servers() {
  if (group_.rank != 0 || server_state_.is_here()) return absl::OkStatus();
  const StopRequest::Saving saving(parts_.stop);
  parts_.membership.progress().set_phase(v1::CHECKPOINTING);
  adopt_servers(Turns::kOver);
  absl::Status taken = server_state_.take(*client_, *replica_, machine_.step(), kSaveLimit);
  saving_ns_ += server_state_.take_stall().count();
  return taken;
}

// Rows of sparse tables lie on the servers, and in files, but never all of them in this process.
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

absl::StatusOr<std::string> Trainer::write_model_files() {
  const std::string& folder = spec_.checkpoint().model_directory();
  if (tables_.empty()) return replica_->write_model(files_, folder);
  adopt_servers(Turns::kOver);
  return server_state_.write_model(*client_, folder, kSaveLimit);
}

}  // namespace paceline::trainer

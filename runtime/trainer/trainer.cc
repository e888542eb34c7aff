#include "runtime/trainer/trainer.h"

#include <algorithm>

#include "base/status.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/collective/fault.h"
#include "runtime/trainer/leaving_cause.h"
#include "runtime/trainer/limits.h"
#include "runtime/trainer/plan.h"
#include "runtime/trainer/table_specs.h"

namespace paceline::trainer {

namespace {

// For the coordinator's word, where what the servers held is gone.
constexpr Duration kWordLimit = std::chrono::seconds(10);
constexpr Duration kGoodbyeLimit = std::chrono::seconds(2);

// What a server lacks is no lack of this member's.
bool is_peers_fault(const absl::Status& status, int own_rank) {
  if (absl::IsResourceExhausted(status))
    return collective::faulty_rank(status).value_or(own_rank) != own_rank;
  return absl::IsUnavailable(status) || absl::IsAborted(status) || absl::IsDeadlineExceeded(status);
}

}  // namespace

Trainer::Trainer(TrainerParts parts, TrainerOptions options)
    : parts_(std::move(parts)),
      files_(parts_.files, parts_.stop),
      options_(std::move(options)),
      spec_(parts_.membership.welcome().training()),
      servers_(spec_.has_parameter_server()),
      tells_hashes_(!servers_ ||
                    spec_.parameter_server().synchronization() == v1::ParameterServerSpec::SYNCHRONOUS),
      tables_(table_specs(spec_)),
      programs_(spec_, workload_, parts_.logger),
      server_state_(spec_, parts_.clock, parts_.stop, files_,
                    [this](const SaveOutcome& saved) { report_saved(saved); }),
      catch_ups_(parts_.membership, parts_.fabric, parts_.clock, parts_.logger),
      step_clock_(parts_.clock, &parts_.membership.progress().current_part()),
      started_(parts_.clock.now()),
      links_(parts_.membership, parts_.fabric, parts_.stop, catch_ups_, !servers_) {}

Trainer::~Trainer() {
  parts_.membership.progress().set_extra(nullptr);
}

Outcome Trainer::run() {
  while (machine_.decision().todo != Todo::kExit) carry_out(machine_.decision().todo);
  session_.reset();
  parts_.membership.progress().set_phase(v1::FINISHED);
  outcome_.ending = machine_.ending();
  outcome_.step = reached();
  if (outcome_.ending == Ending::kEnded) outcome_.error = parts_.membership.status();
  const bool lost = outcome_.ending == Ending::kEnded;  // of a failure leave() told
  parts_.logger.info(str_cat("ends after step ", outcome_.step, ": ", machine_.decision().reason,
                             lost ? ": " : "", lost ? outcome_.error.message() : ""));
  return outcome_;
}

Decision Trainer::carry_out(Todo todo) {
  switch (todo) {
    case Todo::kPrepare:
      return prepare();
    case Todo::kWaitForView:
      return wait_for_view();
    case Todo::kAlign:
      return align();
    case Todo::kStep:
      return step();
    case Todo::kEvaluate:
      return evaluate();
    case Todo::kCheckpoint:
      return save_checkpoint();
    case Todo::kWriteModel:
      return write_model();
    case Todo::kReportFault:
      return report_fault();
    case Todo::kLeave:
      return leave();
    case Todo::kExit:
      break;
  }
  return machine_.decision();
}

// ---- errors ----

Decision Trainer::on_error(const absl::Status& status) {
  const absl::Status membership = parts_.membership.status();
  if (absl::IsDataLoss(membership)) return machine_.ended_in_vain();
  if (!membership.ok()) return machine_.ended(absl::IsCancelled(membership), parts_.membership.is_to_save());
  if (parts_.stop.expired()) return machine_.stopped();
  if (is_peers_fault(status, group_.rank) ||
      (absl::IsCancelled(status) && links_.is_superseded(group_.generation))) {
    fault_ = status;
    return machine_.peer_failed();
  }
  return fail(status);
}

// In the log at once: what is saved before anybody else is told may take long.
Decision Trainer::fail(const absl::Status& error) {
  outcome_.error = error;
  parts_.logger.error(str_cat("fails: ", error.message()));
  return absl::IsOutOfRange(error) ? machine_.diverged() : machine_.failed();
}

// ---- training ----

Decision Trainer::step() {
  if (parts_.stop.requested() && may_leave_alone()) return machine_.stopped();
  const bool leaves = parts_.stop.requested();
  if (const std::uint64_t asked = parts_.membership.saves_asked(); asked != saves_asked_) {
    saves_asked_ = asked;
    machine_.ask_to_save();
  }
  const bool drains = parts_.membership.draining() >= group_.generation || (leaves && others_go_on());
  const Agreement wishes{leaves && !others_go_on(), drains,
                         machine_.wants_save(now()) && !server_state_.busy() &&
                             (device_saver_ == nullptr || !device_saver_->busy())};
  step_clock_.begin();
  const auto result = session_->step(wishes, step_clock_);
  server_state_.look();
  if (device_saver_ != nullptr) {
    if (const auto saved = device_saver_->poll()) report_saved(*saved);
    saving_ns_ += device_saver_->take_stall().count();
  }
  if (!result.ok()) {
    step_clock_.end();
    return on_error(result.status());
  }
  agreed_ = result->agreed;
  report_step(*result);
  if (!servers_) catch_ups_.step_applied(*replica_, agreed_.drain);
  const Decision next = machine_.applied(result->step, result->agreed);
  const bool over = machine_.ending() != Ending::kNone;
  return agreed_.drain && leaves && !over && others_go_on() ? machine_.stopped() : next;
}

void Trainer::report_step(const StepResult& result) {
  bytes_sent_ += result.bytes_sent;
  const Step step = result.step;
  if (step % options_.hash_every == 0) {
    const auto part = step_clock_.part(member::StepPart::kUpdate);
    report_hash(HashTelling::kIfRounder);
  }
  if (!stepped_) {
    stepped_ = true;
    parts_.logger.info(str_cat("first step applied ", format_duration(now() - started_), " after the start"));
  } else if (left_view_.has_value()) {
    parts_.logger.info(str_cat("step ", step, " is the first of view ", group_.generation.value, ", ",
                               format_duration(now() - *left_view_), " after the view before it ended"));
  }
  if (std::exchange(begins_view_, false)) {
    parts_.membership.progress().set_view_begin(
        {viewed_at_ - left_view_.value_or(viewed_at_), aligned_at_ - viewed_at_, now() - aligned_at_, step});
  }
  left_view_.reset();
  member::AppliedStep applied;
  applied.step = step;
  applied.samples = samples_of_steps(spec_, step);
  applied.bytes_sent = bytes_sent_;
  applied.has_loss = result.has_loss && group_.rank == 0;
  applied.loss = result.loss;
  applied.learning_rate = result.learning_rate;
  applied.times = step_clock_.end();
  applied.times.checkpoint += saving_ns_;
  applied.times.step += saving_ns_;
  applied.times.left_out = result.time_left_out.count();
  applied.left_out = result.left_out;
  saving_ns_ = 0;
  applied.since_start_ns = (now() - training_since_).count();
  parts_.membership.progress().step_applied(applied);
}

void Trainer::report_hash(HashTelling telling) {
  const Step step = replica_->step();
  if (step == hashed_step_ || !tells_hashes_) return;
  hashed_step_ = step;
  const absl::StatusOr<std::uint64_t> hashed = replica_->hash();
  if (!hashed.ok()) {  // the next step meets the same
    parts_.logger.warning(str_cat("no hash of the weights: ", hashed.status().message()));
    return;
  }
  const std::uint64_t hash = *hashed;
  member::Progress& progress = parts_.membership.progress();
  if (telling == HashTelling::kAlways) {
    progress.set_weights_hash(step, hash);
  } else {
    progress.offer_weights_hash(step, hash);
  }
  if (options_.on_hash != nullptr) options_.on_hash(step, hash);
}

Decision Trainer::evaluate() {
  member::Progress& progress = parts_.membership.progress();
  progress.set_phase(v1::EVALUATING);
  report_hash();
  const auto result = session_->evaluate(*programs_.evaluator());
  if (!result.ok()) return on_error(result.status());
  const Decision decision = machine_.evaluated(result->loss, result->accuracy, result->auc);
  progress.set_phase(v1::TRAINING);
  if (machine_.target_reached()) {  // who can't be told has gone already
    session_->report_target_reached().IgnoreError();
  }
  if (group_.rank != 0) return decision;
  progress.evaluated({machine_.step(), result->loss, result->accuracy, result->samples,
                      (now() - training_since_).count(), machine_.target_reached(), result->auc});
  parts_.logger.info(str_cat("step ", machine_.step(), ": ", in_words(*result),
                             machine_.target_reached() ? "; the target is reached" : ""));
  return decision;
}

// A checkpoint that can't be written is told and logged; training goes on without it.
Decision Trainer::save_checkpoint() {
  if (servers_) return save_from_servers();
  if (saves_beside_training()) {
    if (device_saver_ == nullptr) {
      device_saver_ = std::make_unique<DeviceSaver>(spec_, parts_.clock, *replica_, parts_.stop, files_);
    }
    report_hash();
    device_saver_->begin();
    return machine_.checkpointed(now());
  }
  settle_save();
  const StopRequest::Saving saving(parts_.stop);
  member::Progress& progress = parts_.membership.progress();
  progress.set_phase(v1::CHECKPOINTING);
  report_hash();
  const TimePoint from = now();
  const std::string& folder = spec_.checkpoint().directory();
  checkpoint::CheckpointStore store = checkpoints();
  const absl::StatusOr<NamedState> state = replica_->snapshot();
  const absl::Status saved = state.ok() ? store.save(state->snapshot) : state.status();
  const Duration stall = now() - from;
  saving_ns_ += stall.count();

  v1::CheckpointResult result;
  result.set_step(replica_->step());
  result.set_path(checkpoint::checkpoint_path(folder, replica_->step()));
  result.set_stall_ns(stall.count());
  if (saved.ok()) {
    std::uint64_t bytes = 0;
    for (const auto& tensor : state->snapshot.tensors) bytes += tensor.data.size();
    result.set_bytes(bytes);
    outcome_.checkpoint_path = result.path();
    parts_.logger.info(str_cat("checkpoint of step ", replica_->step(), " in ", folder, " after ",
                               format_duration(stall), ": ", machine_.decision().reason));
  } else {
    result.set_error(std::string(saved.message()));
    parts_.logger.error(str_cat("no checkpoint of step ", replica_->step(), ": ", saved.message()));
  }
  parts_.membership.report_checkpoint(result);
  progress.set_phase(v1::TRAINING);
  return machine_.checkpointed(now());
}

// ---- the end ----

Decision Trainer::write_model() {
  const StopRequest::Saving saving(parts_.stop);
  report_hash();
  settle_save();
  if (spec_.checkpoint().model_directory().empty()) return machine_.model_written();
  auto path = write_model_files();
  if (!path.ok()) {
    return on_error(
        absl::InternalError(str_cat("the final model couldn't be written: ", path.status().message())));
  }
  outcome_.model_path = *std::move(path);
  return machine_.model_written();
}

Decision Trainer::report_fault() {
  if (!left_view_) left_view_ = now();
  session_.reset();
  catch_ups_.leave(Generation{group_.generation.value + 1});
  parts_.membership.progress().set_phase(v1::WAITING);
  const std::optional<int> rank = collective::faulty_rank(fault_);
  std::string peer;
  if (rank.has_value() && *rank >= 0 && *rank < view_.members_size() && *rank != group_.rank) {
    peer = view_.members(*rank).member_id();
  }
  parts_.logger.warning(
      str_cat("step ", machine_.step(), " is abandoned, and waits for the next view: ", fault_.message()));
  if (!links_.is_superseded(group_.generation))
    parts_.membership.report_peer_fault(group_.generation, machine_.step(), peer,
                                        std::string(fault_.message()));
  const Duration limit = servers_ ? kWordLimit : kFormingLimit;
  return enter(next_view(limit), str_cat("the coordinator had no word for ", format_duration(limit),
                                         " after: ", fault_.message()));
}

Decision Trainer::leave() {
  server_state_.settle();
  settle_save();
  const bool lost =
      machine_.ending() == Ending::kFailed || (machine_.ending() == Ending::kEnded && !servers_);
  if (session_ != nullptr && !lost) session_->leave();
  if (replica_ != nullptr && machine_.ending() == Ending::kFinished) report_hash();
  parts_.membership.progress().set_phase(v1::FINISHED);
  v1::Leaving leaving;
  leaving.set_step(reached());
  switch (machine_.ending()) {
    case Ending::kFinished:
      leaving.set_outcome(v1::Leaving::FINISHED);
      break;
    case Ending::kFailed:
      leaving.set_outcome(v1::Leaving::FAILED);
      leaving.set_cause(leaving_cause(outcome_.error));
      break;
    default:
      leaving.set_outcome(v1::Leaving::STOPPED);
      leaving.set_follows(!parts_.stop.requested());
      break;
  }
  const bool asked = machine_.ending() == Ending::kStopped && parts_.stop.requested();
  std::string reason(machine_.decision().reason);
  if (asked) reason = "this member was asked to stop (SIGTERM or SIGINT)";
  if (!outcome_.error.ok()) reason = std::string(outcome_.error.message());
  leaving.set_reason(reason);
  leaving.set_model_path(outcome_.model_path);
  leaving.set_checkpoint_path(outcome_.checkpoint_path);
  const absl::Status said = parts_.membership.leave(leaving, Deadline::after(now(), kGoodbyeLimit));
  if (!said.ok()) parts_.logger.debug(str_cat("goodbye: ", said.message()));
  return machine_.left(!absl::IsDeadlineExceeded(said));
}

}  // namespace paceline::trainer

#include "runtime/trainer/evaluator_member.h"

#include <algorithm>
#include <utility>

#include "base/pluralize.h"
#include "base/status.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/trainer/leaving_cause.h"
#include "runtime/trainer/memory_budget.h"
#include "runtime/trainer/table_parts.h"
#include "runtime/trainer/table_specs.h"

namespace paceline::trainer {

namespace {

// Between looks at the folder's names; a folder of another machine tells of no change.
constexpr Duration kLook = std::chrono::milliseconds(500);
constexpr Duration kGoodbyeLimit = std::chrono::seconds(2);
// Without a checkpoint: then it says what it waits for.
constexpr Duration kPatience = std::chrono::minutes(1);

std::string when_saved(const v1::CheckpointSpec& spec) {
  std::string text;
  if (spec.every_steps() > 0) text = str_cat("every ", pluralize(spec.every_steps(), "step", "steps"));
  if (spec.every_seconds() > 0)
    text += str_cat(text.empty() ? "" : " and ", "every ", spec.every_seconds(), " s");
  return text.empty() ? "at its end" : text;
}

}  // namespace

EvaluatorMember::EvaluatorMember(EvaluatorParts parts)
    : parts_(std::move(parts)),
      own_files_(parts_.files == nullptr ? checkpoint::make_directory_store() : nullptr),
      files_(parts_.files == nullptr ? *own_files_ : *parts_.files),
      spec_(parts_.membership.welcome().training()),
      format_(spec_),
      began_(parts_.clock.now()) {}

Outcome EvaluatorMember::run() {
  member::Progress& progress = parts_.membership.progress();
  progress.set_phase(v1::STARTING);
  const absl::Status prepared = prepare();
  if (!prepared.ok()) {
    outcome_.configuration = true;
    return leave(v1::Leaving::FAILED, prepared);
  }
  parts_.logger.info(str_cat("evaluates the checkpoints in ", spec_.checkpoint().directory(), " on ",
                             workload_.data.test->size(), " held-out samples"));
  while (go_on().ok()) {
    // What is saved by then is the last: the job's end waits for a look that begins later (docs/protocol.md).
    const bool over = parts_.membership.draining().value > 0;
    if (!seen_the_last_) progress.set_phase(v1::WAITING);
    const absl::Status looked = look();
    if (absl::IsInternal(looked) || !outcome_.error.ok()) return leave(v1::Leaving::FAILED, looked);
    if (over && looked.ok() && !std::exchange(seen_the_last_, true)) {
      progress.set_phase(v1::FINISHED);
      parts_.membership.beat_now();
    }
    if (looked != told_ && !looked.ok() && go_on().ok()) parts_.logger.warning(std::string(looked.message()));
    told_ = looked;
    const bool none = tried_.empty() && may_look_.ok();
    if (none && !told_of_none_ && parts_.clock.now() - began_ >= kPatience) {
      told_of_none_ = true;
      parts_.logger.warning(str_cat("still waits for the first checkpoint. ", none_found()));
    }
    // Views are not for it: this waits, and ends with the membership.
    const auto view = parts_.membership.wait_view(seen_, Deadline::after(parts_.clock.now(), kLook));
    if (view.ok()) seen_ = Generation{view->generation()};
  }
  if (outcome_.step == 0) parts_.logger.warning(str_cat("has evaluated nothing. ", nothing_evaluated()));
  const absl::Status membership = parts_.membership.status();
  if (membership.ok()) return leave(v1::Leaving::STOPPED, absl::OkStatus());
  outcome_.ending = absl::IsCancelled(membership) ? Ending::kFinished : Ending::kEnded;
  if (outcome_.ending == Ending::kEnded) outcome_.error = membership;
  parts_.logger.info(str_cat("ends: ", membership.message()));
  return outcome_;
}

absl::Status EvaluatorMember::go_on() const {
  PL_RETURN_IF_ERROR(parts_.membership.status());
  return parts_.stop.requested() ? absl::CancelledError("asked to stop") : absl::OkStatus();
}

absl::Status EvaluatorMember::prepare() {
  if (spec_.checkpoint().directory().empty()) {
    return absl::InvalidArgumentError("an evaluator needs checkpoints: give spec.checkpoint.location");
  }
  PL_ASSIGN_OR_RETURN(workload_, parts_.open_workload(spec_));
  if (workload_.data.test == nullptr || workload_.data.test->size() == 0) {
    return absl::InvalidArgumentError(
        "an evaluator needs held-out samples: give data.test, or data.testFraction above 0");
  }
  if (workload_.sparse.has_value()) {
    PL_ASSIGN_OR_RETURN(rows_,
                        CheckpointRows::open(*workload_.data.test, *workload_.sparse, table_specs(spec_)));
  }
  const std::int64_t rows = evaluation_rows(spec_, workload_);
  auto compiled = workload_.compile(Purpose::kEvaluation, rows, {workload_.weight_bytes, "weights"});
  PL_RETURN_IF_ERROR(evaluation_room(compiled.status(), rows, false, workload_.room != nullptr));
  std::unique_ptr<tensor::Program> program = *std::move(compiled);
  weights_.resize(program->parameters().elements);
  program->bind(weights_, {});
  PL_ASSIGN_OR_RETURN(evaluator_,
                      Evaluator::create(workload_.data.test, std::move(program), workload_.sparse));
  return absl::OkStatus();
}

std::string EvaluatorMember::none_found() const {
  const std::string& folder = spec_.checkpoint().directory();
  const checkpoint::CheckpointStore store(files_, folder, 1);
  const auto newest = store.newest();
  if (!newest.ok()) {
    return str_cat("It may not look for checkpoints in ", folder, ": ", newest.status().message(),
                   ". Let this member read that folder, or give another one: spec.checkpoint.location");
  }
  if (!newest->empty()) {
    return str_cat("The newest checkpoint in ", folder, ", ", *newest,
                   ", is not complete: its manifest.json, which is written last, is not there, or not whole; "
                   "either it is still being written, or who wrote it has ended");
  }
  return str_cat("It looks for folders step-* with a manifest.json in ", folder,
                 " and finds none; the chief (or worker 0) saves there ", when_saved(spec_.checkpoint()),
                 ". If it has saved, they see different folders: on a cluster give both templates one volume "
                 "for it (docs/kubernetes.md, Where files are). If not, let it save more often: "
                 "spec.checkpoint.everySteps or everySeconds");
}

std::string EvaluatorMember::nothing_evaluated() const {
  const std::string& folder = spec_.checkpoint().directory();
  if (!tried_.empty())
    return str_cat("It could read no checkpoint in ", folder, "; a line above says why of ", tried_);
  const checkpoint::CheckpointStore store(files_, folder, 1);
  const absl::Status peeked = store.peek_latest().status();
  if (checkpoint::is_no_fault_of_it(peeked) && store.newest().ok())
    return str_cat("It could read no checkpoint in ", folder, ": ", peeked.message());
  if (!peeked.ok()) return none_found();
  return str_cat("There are checkpoints in ", folder,
                 ", but it was not done with one when it was to end: a job that is as short needs them "
                 "earlier, by spec.checkpoint.everySteps");
}

// INTERNAL: this member can't evaluate. Other errors: not this checkpoint.
absl::Status EvaluatorMember::look() {
  const checkpoint::CheckpointStore store(files_, spec_.checkpoint().directory(), 1);
  const auto newest = store.newest();
  if (!newest.ok() && may_look_.ok()) parts_.logger.warning(str_cat("waits. ", none_found()));
  may_look_ = newest.status();
  if (!newest.ok() || newest->empty() || *newest == newest_) return absl::OkStatus();
  const auto loaded = store.load_latest([this] {
    return go_on().ok() ? absl::OkStatus() : absl::CancelledError("no evaluation is wanted any more");
  });
  if (absl::IsCancelled(loaded.status())) return loaded.status();
  const bool none_complete = absl::IsNotFound(loaded.status()) || absl::IsFailedPrecondition(loaded.status());
  if (none_complete) return absl::OkStatus();  // yet
  const absl::Status evaluated = loaded.ok() ? evaluate(store, *loaded) : loaded.status();
  if (!evaluated.ok() && !go_on().ok()) return evaluated;  // it was not to the end of it
  tried_ = *newest;
  if (absl::IsResourceExhausted(evaluated)) return evaluated;  // it passes, or does not: no fault of this one
  // A step that is saved again while it is read looks like a damaged one: the next look tells.
  const bool whole = evaluated.ok() && loaded->name == *newest;
  if (whole || *newest == failed_) newest_ = *newest;
  failed_ = *newest;
  return evaluated;
}

absl::Status EvaluatorMember::evaluate(const checkpoint::CheckpointStore& store,
                                       const checkpoint::LoadedCheckpoint& loaded) {
  if (loaded.progress.step <= outcome_.step && outcome_.step > 0) return absl::OkStatus();
  PL_RETURN_IF_ERROR(format_.restore(loaded, {weights_, {}}).status());
  member::Progress& progress = parts_.membership.progress();
  progress.set_phase(v1::EVALUATING);
  const auto going = [this] { return go_on(); };
  SparseRows::Pull pull;
  if (rows_ != nullptr) {
    PL_ASSIGN_OR_RETURN(const auto parts, TablePartsReader::open(store, loaded, table_specs(spec_)));
    PL_RETURN_IF_ERROR(rows_->load(*parts, going));
    pull = [this](std::span<const pserver::sparse::RowsPull> pulls) { return rows_->pull(pulls); };
  }
  const auto evaluated = evaluator_->run_alone(going, pull);
  // A checkpoint that is damaged may be one that is saved again: its own samples are not.
  if (absl::IsDataLoss(evaluated.status())) outcome_.error = evaluated.status();
  PL_ASSIGN_OR_RETURN(const EvaluationResult result, evaluated);
  outcome_.step = loaded.progress.step;
  progress.evaluated({loaded.progress.step, result.loss, result.accuracy, result.samples,
                      (parts_.clock.now() - began_).count(), false, result.auc});
  parts_.logger.info(str_cat(loaded.name, ": ", in_words(result)));
  return absl::OkStatus();
}

Outcome EvaluatorMember::leave(v1::Leaving::Outcome how, const absl::Status& error) {
  outcome_.ending = how == v1::Leaving::STOPPED ? Ending::kStopped : Ending::kFailed;
  outcome_.error = error;
  parts_.membership.progress().set_phase(v1::FINISHED);
  v1::Leaving leaving;
  leaving.set_outcome(how);
  leaving.set_cause(leaving_cause(error));
  leaving.set_reason(error.ok() ? "this member was asked to stop (SIGTERM or SIGINT)"
                                : std::string(error.message()));
  leaving.set_step(outcome_.step);
  // Before anybody is told, who may look into the log then.
  if (!error.ok()) parts_.logger.error(str_cat("fails: ", leaving.reason()));
  const absl::Status said =
      parts_.membership.leave(leaving, Deadline::after(parts_.clock.now(), kGoodbyeLimit));
  if (!said.ok()) parts_.logger.debug(str_cat("goodbye: ", said.message()));
  if (error.ok()) parts_.logger.info(str_cat("ends: ", leaving.reason()));
  return outcome_;
}

}  // namespace paceline::trainer

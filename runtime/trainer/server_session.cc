#include "runtime/trainer/server_session.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "runtime/trainer/limits.h"

namespace paceline::trainer {

namespace {

using member::StepPart;

constexpr Duration kInputTimeout = std::chrono::seconds(120);  // for one unit

std::vector<double> shares_of_units(const v1::TrainingSpec& spec) {
  return data::equal_shares(static_cast<int>(spec.parameter_server().units_per_step()));
}

pserver::Wishes wishes_of(const Agreement& wishes) {
  return {.stop = wishes.stop, .drain = wishes.drain, .save = wishes.save, .target_reached = wishes.finish};
}

}  // namespace

std::vector<std::int64_t> unit_rows(const v1::TrainingSpec& spec) {
  return data::cut_batch(spec.global_batch_size(), shares_of_units(spec));
}

absl::StatusOr<std::unique_ptr<ServerSession>> ServerSession::open(const ServerSessionParts& parts,
                                                                   std::shared_ptr<const data::Dataset> train,
                                                                   Deadline deadline) {
  std::unique_ptr<ServerSession> session(new ServerSession(parts, std::move(train)));
  PL_RETURN_IF_ERROR(session->wait_turn(deadline));
  return session;
}

ServerSession::ServerSession(const ServerSessionParts& parts, std::shared_ptr<const data::Dataset> train)
    : parts_(parts),
      train_(std::move(train)),
      shares_(shares_of_units(parts.spec)),
      ledger_({parts.spec.seed(), train_->size(), parts.spec.global_batch_size()}),
      timeout_(std::chrono::milliseconds(parts.spec.parameter_server().timeout_ms())),
      overlap_(parts.spec.parameter_server().overlap()),
      passes_(parts.spec, train_->shape(), parts.program),
      counted_(parts.client.counters()) {
  before_last_ = [this](double loss_sum) {
    loss_sum_ = loss_sum;
    return absl::OkStatus();
  };
  on_ready_ = [this](std::size_t begin, std::size_t end) {
    if (overlap_ && push_status_.ok()) push_status_ = parts_.client.push(begin, end);
  };
  const std::vector<std::int64_t> rows = unit_rows(parts.spec);
  const auto plan = [this](std::int64_t unit, std::vector<std::int64_t>& indices) {
    ledger_.samples_of_unit(unit, shares_, indices);
    return augmentation_seed(parts_.spec, unit / static_cast<std::int64_t>(shares_.size()));
  };
  input_ = std::make_unique<data::UnitPrefetcher>(
      train_, plan,
      data::UnitPrefetcherOptions{.max_rows = *std::max_element(rows.begin(), rows.end()),
                                  .ahead = parts.spec.data().prefetch() > 0});
}

absl::Status ServerSession::wait_turn(Deadline deadline) {
  PL_ASSIGN_OR_RETURN(turn_, parts_.client.wait_turn(deadline));
  parts_.replica.set_step(turn_.step);
  parts_.program.weights_changed();
  return absl::OkStatus();
}

absl::StatusOr<StepResult> ServerSession::step(const Agreement& wishes, member::StepClock& clock) {
  const Step before = turn_.step;
  if (turn_.finished) return result_of(wishes, before);  // so was its first turn
  data::Batch batch;
  {
    auto part = clock.part(StepPart::kInput);
    auto taken = input_->take(turn_.unit, kInputTimeout);
    // Its errors are this member's own, whatever their code: no peer is to blame for input.
    if (!taken.ok()) return absl::InternalError(str_cat("no input: ", taken.status().message()));
    batch = *taken;
    input_->expect(turn_.next);
  }
  {
    auto part = clock.part(StepPart::kCompute);
    PL_RETURN_IF_ERROR(compute(batch, wishes));
  }
  {
    auto part = clock.part(StepPart::kWait);
    const TimePoint from = parts_.clock.now();
    PL_RETURN_IF_ERROR(wait_turn(Deadline::after(from, patience())));
    // What was not waiting here was moving bytes, and the rest of that went on in push().
    const pserver::ClientTimes times = parts_.client.last_times();
    const Duration moved = std::min(times.transfer, parts_.clock.now() - from - times.wait);
    clock.move(StepPart::kWait, StepPart::kTransfer, moved);
    clock.move(StepPart::kCompute, StepPart::kTransfer, times.transfer - moved);
  }
  return result_of(wishes, before);
}

absl::Status ServerSession::compute(const data::Batch& batch, const Agreement& wishes) {
  push_status_ = absl::OkStatus();
  loss_sum_ = 0;
  const std::span<float> gradient = parts_.replica.gradient();
  const bool empty = batch.rows() == 0;
  if (empty) {
    std::fill(gradient.begin(), gradient.end(), 0.0F);
  } else {
    PL_RETURN_IF_ERROR(passes_.run(batch, before_last_, on_ready_));
  }
  PL_RETURN_IF_ERROR(push_status_);
  if (!std::isfinite(loss_sum_)) {
    return absl::OutOfRangeError(str_cat(
        "step ", turn_.step, ": the loss of unit ", turn_.unit, " is ", loss_sum_,
        ", training has diverged; lower optimizer.learningRate, warm it up, or set optimizer.clipNorm"));
  }
  if (empty || !overlap_) PL_RETURN_IF_ERROR(parts_.client.push(0, gradient.size()));
  return parts_.client.commit({.loss_sum = loss_sum_, .samples = batch.rows(), .wishes = wishes_of(wishes)});
}

// Others wait for worker 0 while it evaluates: longer than for a gradient, around the steps at which it does.
Duration ServerSession::patience() const {
  const Step every = parts_.plan.evaluate_every;
  const Step lead = parts_.spec.parameter_server().staleness() + 2;
  const bool evaluates = parts_.plan.evaluates && every > 0 &&
                         (turn_.step + lead) / every > std::max<Step>(0, turn_.step - lead) / every;
  return evaluates ? timeout_ + kSaveLimit : timeout_;
}

StepResult ServerSession::result_of(const Agreement& wishes, Step before) {
  const pserver::ClientCounters now = parts_.client.counters();
  StepResult result;
  result.step = turn_.step;
  result.agreed = {.stop = turn_.agreed.stop,
                   .drain = turn_.agreed.drain,
                   .save = wishes.save && turn_.step > before,
                   .finish = turn_.finished};
  told_loss_ += turn_.loss_sum;
  told_samples_ += turn_.samples;
  result.has_loss = turn_.step > before && told_samples_ > 0;  // one record for each step
  if (result.has_loss) {
    result.loss = told_loss_ / static_cast<double>(told_samples_);
    told_loss_ = 0;
    told_samples_ = 0;
  }
  result.learning_rate = turn_.learning_rate;
  result.bytes_sent = now.bytes_sent - counted_.bytes_sent;
  result.bytes_received = now.bytes_received - counted_.bytes_received;
  counted_ = now;
  return result;
}

absl::StatusOr<EvaluationResult> ServerSession::evaluate(Evaluator& evaluator) {
  return evaluator.run_alone([this]() -> absl::Status {
    PL_RETURN_IF_ERROR(parts_.client.closed());
    return parts_.client.interrupted() ? absl::CancelledError("the evaluation is interrupted")
                                       : absl::OkStatus();
  });
}

absl::Status ServerSession::tell_target_reached() {
  return parts_.client.wish({.target_reached = true});
}

// Who can't be told has gone already.
void ServerSession::leave() {
  parts_.client.leave().IgnoreError();
}

}  // namespace paceline::trainer

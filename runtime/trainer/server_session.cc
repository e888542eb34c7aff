#include "runtime/trainer/server_session.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/status.h"
#include "runtime/trainer/limits.h"
#include "runtime/trainer/not_finite.h"
#include "runtime/trainer/passes.h"

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

bool updates_need_everybody(const v1::ParameterServerSpec& spec) {
  return spec.synchronization() == v1::ParameterServerSpec::SYNCHRONOUS &&
         spec.gradients_per_step() >= spec.workers();
}

// While it evaluates, worker 0 keeps the unit of its turn. Where updates need everybody, the others come no
// further than its step. Elsewhere they do, for as long as there are units and nobody else is missing: then
// they wait for it any number of steps later (at the end of training, when they lead by the staleness, when
// as few are left as an update needs).
Duration turn_patience(const v1::TrainingSpec& spec, const StepPlan& plan, int rank, Step step) {
  constexpr Step kNear = 2;
  const Duration timeout = std::chrono::milliseconds(spec.parameter_server().timeout_ms());
  const Step every = plan.evaluate_every;
  if (rank == 0 || !plan.evaluates || every <= 0) return timeout;
  const bool near = (step + kNear) / every > std::max<Step>(0, step - kNear) / every;
  return near || !updates_need_everybody(spec.parameter_server()) ? timeout + kSaveLimit : timeout;
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
      overlap_(parts.spec.parameter_server().overlap()),
      passes_(parts.spec, train_->shape(), parts.program,
              parts.rows == nullptr ? nullptr : &parts.rows->batch()),
      counted_(parts.client.counters()) {
  before_last_ = [this](double loss_sum) {
    loss_sum_ = loss_sum;
    return absl::OkStatus();
  };
  on_ready_ = [this](std::size_t begin, std::size_t end) {
    if (overlap_ && push_status_.ok()) push_status_ = parts_.client.push(begin, end);
  };
  if (parts.rows != nullptr) {
    const Duration timeout = std::chrono::milliseconds(parts.spec.parameter_server().timeout_ms());
    pull_ = [this, timeout](std::span<const pserver::sparse::RowsPull> pulls) {
      return parts_.client.pull_rows(pulls, Deadline::after(parts_.clock.now(), timeout));
    };
  }
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
    if (!taken.ok()) return input_error(taken.status(), "no input");
    batch = *taken;
    input_->expect(turn_.next);
  }
  Duration moved = parts_.client.times().transfer;
  const auto move_bytes = [&](StepPart from) {  // what the client did in it was moving bytes
    const Duration now = parts_.client.times().transfer;
    clock.move(from, StepPart::kTransfer, now - std::exchange(moved, now));
  };
  {
    auto part = clock.part(StepPart::kCompute);
    PL_RETURN_IF_ERROR(compute(batch, wishes));
    move_bytes(StepPart::kCompute);
  }
  {
    auto part = clock.part(StepPart::kWait);
    const Duration patience = turn_patience(parts_.spec, parts_.plan, parts_.rank, before);
    PL_RETURN_IF_ERROR(wait_turn(Deadline::after(parts_.clock.now(), patience)));
    move_bytes(StepPart::kWait);
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
    if (parts_.rows != nullptr) PL_RETURN_IF_ERROR(parts_.rows->pull(batch.tokens, pull_));
    PL_RETURN_IF_ERROR(passes_.run(batch, before_last_, on_ready_));
  }
  PL_RETURN_IF_ERROR(push_status_);
  if (!std::isfinite(loss_sum_)) {
    return not_finite(str_cat("step ", turn_.step, ": the loss of unit ", turn_.unit), loss_sum_,
                      turn_.step > 0, *train_, batch);
  }
  if (empty || !overlap_) PL_RETURN_IF_ERROR(parts_.client.push(0, gradient.size()));
  if (parts_.rows != nullptr && !empty) {
    PL_RETURN_IF_ERROR(parts_.client.push_rows(parts_.rows->pushes()));
  }
  return parts_.client.commit({.loss_sum = loss_sum_, .samples = batch.rows(), .wishes = wishes_of(wishes)});
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
  counted_ = now;
  return result;
}

absl::StatusOr<EvaluationResult> ServerSession::evaluate(Evaluator& evaluator) {
  const auto go_on = [this]() -> absl::Status {
    PL_RETURN_IF_ERROR(parts_.client.closed());
    return parts_.client.interrupted() ? absl::CancelledError("the evaluation is interrupted")
                                       : absl::OkStatus();
  };
  if (pull_ == nullptr) return evaluator.run_alone(go_on);
  return evaluator.run_alone(go_on, pull_);
}

absl::Status ServerSession::report_target_reached() {
  return parts_.client.wish({.target_reached = true});
}

// Who can't be told has gone already.
void ServerSession::leave() {
  parts_.client.leave().IgnoreError();
}

}  // namespace paceline::trainer

#include "runtime/trainer/all_reduce_session.h"

#include <algorithm>
#include <cmath>

#include "base/status.h"
#include "runtime/exchange/exchanges.h"
#include "runtime/exchange/staged_exchange.h"
#include "runtime/optimizer/schedule.h"
#include "runtime/trainer/limits.h"
#include "runtime/trainer/not_finite.h"
#include "runtime/trainer/passes.h"
#include "runtime/trainer/plan.h"

namespace paceline::trainer {

namespace {

using member::StepPart;

constexpr Duration kInputTimeout = std::chrono::seconds(120);  // for one batch

}  // namespace

absl::StatusOr<std::unique_ptr<AllReduceSession>> AllReduceSession::open(
    const SessionParts& parts, std::shared_ptr<const data::Dataset> train, std::vector<double> shares,
    Step total_steps) {
  std::unique_ptr<AllReduceSession> session(
      new AllReduceSession(parts, std::move(train), std::move(shares), total_steps));
  PL_ASSIGN_OR_RETURN(session->exchange_, open_exchange(parts));
  session->start_input();
  return session;
}

absl::StatusOr<std::shared_ptr<exchange::GradientExchange>> AllReduceSession::open_exchange(
    const SessionParts& parts) {
  if (parts.device_exchange != nullptr) return parts.device_exchange;
  PL_ASSIGN_OR_RETURN(auto host,
                      exchange::make_exchange(exchange::kAllReduce, parts.spec.exchange(), parts.communicator,
                                              parts.replica.exchanged(), parts.clock));
  optimizer::DeviceState* const device = parts.replica.on_device();
  if (device == nullptr) return host;
  std::unique_ptr<tensor::Queue> side;
  if (parts.communicator.world_size() > 1) {
    auto opened = device->open_queue();
    if (!opened.ok()) return own_fault(opened.status());
    side = *std::move(opened);
  }
  return exchange::make_staged_exchange(std::move(host), device->queue(), std::move(side),
                                        device->vectors().gradients, parts.replica.gradient().size(),
                                        parts.replica.exchanged());
}

AllReduceSession::AllReduceSession(const SessionParts& parts, std::shared_ptr<const data::Dataset> train,
                                   std::vector<double> shares, Step total_steps)
    : parts_(parts),
      train_(std::move(train)),
      shares_(std::move(shares)),
      total_steps_(total_steps),
      ledger_({parts.spec.seed(), train_->size(), parts.spec.global_batch_size()}),
      rows_(data::cut_batch(parts.spec.global_batch_size(),
                            shares_)[static_cast<std::size_t>(parts.communicator.rank())]),
      timeout_(std::chrono::milliseconds(parts.spec.exchange().timeout_ms())),
      partial_(parts.spec.exchange().max_drop_rate(), parts.spec.micro_batch_size(),
               data::cut_batch(parts.spec.global_batch_size(), shares_), parts.communicator.rank()),
      passes_(parts.spec, train_->shape(), parts.program, nullptr, parts.trainers) {
  passes_.before_gradient(parts_.before_gradient);
  if (partial_.possible()) {
    passes_.ask([this](std::int64_t done) {
      const bool goes_on = partial_.goes_on(done, parts_.clock.now() - step_began_);
      if (!goes_on) left_out_ = rows_ - done;
      return goes_on;
    });
  }
  before_last_ = [this](double loss_sum) { return declare_controls(loss_sum, wishes_); };
  // Alone on a device there is nobody to hear of parts, and the pass is added as a whole.
  if (parts_.communicator.world_size() == 1 && parts_.replica.on_device() != nullptr) return;
  on_ready_ = [this](std::size_t begin, std::size_t end) {
    if (ready_status_.ok()) ready_status_ = exchange_->range_ready(begin, end);
  };
}

void AllReduceSession::start_input() {
  if (rows_ == 0) return;
  data::PrefetcherOptions options;
  options.first_step = parts_.replica.step();
  options.end_step = total_steps_;
  options.max_rows = rows_;
  options.depth =
      static_cast<int>(std::clamp<std::int64_t>(parts_.spec.data().prefetch(), 0, data::kMaxPrefetchDepth));
  const int rank = parts_.communicator.rank();
  const auto plan = [this, rank](std::int64_t step, std::vector<std::int64_t>& indices) {
    ledger_.samples_of(step, rank, shares_, indices);
    return augmentation_seed(parts_.spec, step);
  };
  input_ = std::make_unique<data::Prefetcher>(train_, plan, options);
}

absl::StatusOr<StepResult> AllReduceSession::step(const Agreement& wishes, member::StepClock& clock) {
  const Duration late = rank_zero_saves_ ? kSaveLimit : Duration::zero();
  if (partial_.full()) PL_RETURN_IF_ERROR(choose_threshold(late, clock));
  step_began_ = parts_.clock.now();
  left_out_ = 0;
  PL_RETURN_IF_ERROR(exchange_->begin_step(parts_.replica.step(), late));
  ready_status_ = absl::OkStatus();
  data::Batch batch;
  if (input_ == nullptr) {
    auto part = clock.part(StepPart::kCompute);
    PL_RETURN_IF_ERROR(no_samples(wishes));
    PL_RETURN_IF_ERROR(exchange_->wait_for_device());
  } else {
    {
      auto part = clock.part(StepPart::kInput);
      PL_ASSIGN_OR_RETURN(batch, next_batch());
    }
    auto part = clock.part(StepPart::kCompute);
    PL_RETURN_IF_ERROR(compute(batch, wishes));
  }
  PL_RETURN_IF_ERROR(ready_status_);

  StepResult result;
  {
    auto part = clock.part(StepPart::kWait);
    PL_RETURN_IF_ERROR(exchange_->finish(Deadline::after(parts_.clock.now(), timeout_ + late)));
    const exchange::ExchangeTimes times = exchange_->last_times();
    result.bytes_sent = times.bytes_sent;
    clock.move(StepPart::kWait, StepPart::kTransfer, times.transfer);
  }
  auto part = clock.part(StepPart::kUpdate);
  PL_RETURN_IF_ERROR(update(result, batch));
  place_update(clock);
  result.left_out = left_out_;
  result.time_left_out = partial_.time_left_out();
  rank_zero_saves_ = result.agreed.save;
  return result;
}

absl::Status AllReduceSession::compute(const data::Batch& batch, const Agreement& wishes) {
  wishes_ = wishes;
  PL_RETURN_IF_ERROR(passes_.run(batch, before_last_, on_ready_));
  if (!on_ready_) ready_status_ = exchange_->range_ready(0, parts_.replica.gradient().size());
  PL_RETURN_IF_ERROR(exchange_->wait_for_device());
  if (partial_.possible()) partial_.computed(parts_.clock.now() - step_began_);
  return absl::OkStatus();
}

// All members do so before the same step, since each counts the steps of this view.
absl::Status AllReduceSession::choose_threshold(Duration late, member::StepClock& clock) {
  auto part = clock.part(StepPart::kWait);
  const std::span<float> table = partial_.table();
  PL_RETURN_IF_ERROR(parts_.communicator.all_reduce(table.data(), table.size(), DType::kF32,
                                                    collective::ReduceOp::kSum,
                                                    Deadline::after(parts_.clock.now(), timeout_ + late)));
  partial_.choose();
  if (parts_.on_threshold != nullptr) parts_.on_threshold(partial_.threshold());
  return absl::OkStatus();
}

// On a device nobody waits for an update's end: the passes behind it do, and with them the host.
void AllReduceSession::place_update(member::StepClock& clock) {
  optimizer::DeviceState* const device = parts_.replica.on_device();
  if (device == nullptr) return;
  const tensor::DeviceTimes& last = device->queue().timer().last();
  clock.move_beyond(StepPart::kCompute, last.passes, StepPart::kUpdate, last.update);
}

absl::StatusOr<data::Batch> AllReduceSession::next_batch() {
  auto batch = input_->next(kInputTimeout);
  if (batch.ok()) return batch;
  return input_error(batch.status(), str_cat("step ", parts_.replica.step(), ": no input"));
}

absl::Status AllReduceSession::no_samples(const Agreement& wishes) {
  const std::span<float> gradient = parts_.replica.gradient();
  if (parts_.before_gradient != nullptr) parts_.before_gradient();
  if (optimizer::DeviceState* const device = parts_.replica.on_device(); device != nullptr) {
    const absl::Status cleared =
        device->queue().clear(device->vectors().gradients, gradient.size() * sizeof(float));
    if (!cleared.ok()) return own_fault(cleared);
  } else {
    std::fill(gradient.begin(), gradient.end(), 0.0F);
  }
  PL_RETURN_IF_ERROR(declare_controls(0, wishes));
  return exchange_->range_ready(0, gradient.size());
}

absl::Status AllReduceSession::declare_controls(double loss_sum, const Agreement& wishes) {
  write_controls({loss_sum, wishes, left_out_}, parts_.replica.controls());
  const std::size_t begin = parts_.replica.gradient().size();
  return exchange_->range_ready(begin, begin + kControls);
}

absl::Status AllReduceSession::update(StepResult& result, const data::Batch& batch) {
  const Controls sums = read_controls(parts_.replica.controls());
  result.agreed = sums.wishes;
  const auto batch_size = static_cast<double>(parts_.spec.global_batch_size());
  const double used = batch_size - static_cast<double>(sums.left_out);
  result.loss = sums.loss_sum / used;
  const Step step = parts_.replica.step();
  if (!std::isfinite(result.loss)) {
    return not_finite(str_cat("step ", step, ": the loss"), result.loss, step > 0, *train_, batch);
  }
  result.learning_rate =
      optimizer::learning_rate(parts_.spec.optimizer(), step, total_steps_, parts_.trainers);
  const absl::Status updated = parts_.replica.update(result.learning_rate, batch_size / used);
  if (absl::IsInvalidArgument(updated)) {
    return absl::OutOfRangeError(str_cat("step ", step, ": ", updated.message()));
  }
  if (!updated.ok()) return own_fault(updated);
  if (partial_.possible()) partial_.applied(parts_.clock.now() - step_began_, sums.left_out);
  result.step = parts_.replica.step();
  parts_.program.weights_changed();
  return absl::OkStatus();
}

}  // namespace paceline::trainer

// The trainer's part where devices have memory of their own: where the state is trained, and how gradients go
// from one to the other.

#include <array>

#include "base/status.h"
#include "runtime/trainer/limits.h"
#include "runtime/trainer/passes.h"
#include "runtime/trainer/trainer.h"

namespace paceline::trainer {

namespace {
constexpr Duration kMeetingLimit = std::chrono::minutes(1);  // of members that have met once
constexpr std::size_t kMebibyte = std::size_t{1} << 20;
}  // namespace

// The state is trained on the members' devices where all of them have memory of their own: the gradient's
// norm is a sum, and those of hosts and devices differ in their last bits.
absl::StatusOr<bool> Trainer::place_state() {
  std::array<std::int64_t, 2> all = {workload_.make_state != nullptr ? 1 : 0,
                                     workload_.open_exchange != nullptr ? 1 : 0};
  if (communicator_->world_size() > 1) {
    PL_RETURN_IF_ERROR(communicator_->all_reduce(
        all.data(), all.size(), DType::kI64, collective::ReduceOp::kMin, Deadline::after(now(), kLoadLimit)));
  }
  const absl::Status placed =
      all[0] != 0 ? replica_->to_device(workload_.make_state) : replica_->leave_device();
  if (!placed.ok()) {
    return own_fault(with_context(placed, "weights, gradient and optimizer state find no place"));
  }
  if (evaluator_ != nullptr) {
    const absl::Status bound = replica_->bind(evaluator_->program(), Purpose::kEvaluation);
    if (!bound.ok()) return own_fault(bound);
  }
  return all[0] != 0 && all[1] != 0;
}

// Null: the gradients go by way of the hosts. All members have met by now: nobody takes the links that are
// made here for those of connect().
absl::StatusOr<std::shared_ptr<exchange::GradientExchange>> Trainer::open_device_exchange(bool all_can) {
  using Exchange = std::shared_ptr<exchange::GradientExchange>;
  optimizer::DeviceState* const device = replica_->on_device();
  const bool opens = all_can && device != nullptr && communicator_->world_size() > 1;
  if (!opens && workload_.let_exchange_go != nullptr) workload_.let_exchange_go();
  if (device == nullptr || communicator_->world_size() == 1) return Exchange();
  const auto by_hosts = [this](std::string_view why) {
    parts_.logger.info(str_cat("gradients go by way of the hosts' memory: ", why));
    return Exchange();
  };
  if (!all_can) {
    return by_hosts(workload_.open_exchange == nullptr ? std::string_view(workload_.why_no_exchange)
                                                       : "another member can't do without");
  }
  const Deadline deadline =
      Deadline::after(now(), kMeetingLimit + std::chrono::milliseconds(spec_.exchange().timeout_ms()));
  PL_ASSIGN_OR_RETURN(auto own, parts_.fabric.connect(group_, deadline));
  auto opened = workload_.open_exchange({.spec = spec_.exchange(),
                                         .clock = parts_.clock,
                                         .links = *communicator_,
                                         .own = std::move(own),
                                         .queue = device->queue(),
                                         .gradient = device->vectors().gradients,
                                         .elements = replica_->gradient().size(),
                                         .behind = replica_->controls()},
                                        deadline);
  if (absl::IsFailedPrecondition(opened.status())) return by_hosts(std::string(opened.status().message()));
  PL_RETURN_IF_ERROR(opened.status());
  const Exchange exchange = std::move(opened->exchange);
  adopt([links = communicator_, exchange = std::weak_ptr(exchange)](const absl::Status& reason) {
    links->close(reason);
    if (const Exchange open = exchange.lock()) open->close(reason);
  });
  parts_.logger.info(str_cat("gradients go from device to device",
                             opened->how.empty() ? "" : str_cat(" (", opened->how, ")")));
  return exchange;
}

absl::Status Trainer::log_memory() {
  const auto training = program_->memory();
  if (!training.ok()) return own_fault(training.status());
  if (training->total == 0) return absl::OkStatus();
  std::size_t evaluation = 0;
  if (evaluator_ != nullptr) {
    const auto used = evaluator_->program().memory();
    if (!used.ok()) return own_fault(used.status());
    evaluation = used->activations + used->batch + used->vectors;
  }
  optimizer::DeviceState* const state = replica_->on_device();
  const auto mib = [](std::size_t bytes) { return str_cat((bytes + kMebibyte - 1) / kMebibyte, " MiB"); };
  parts_.logger.info(str_cat(
      "memory of the device: ", mib((state == nullptr ? 0 : state->bytes()) + training->vectors),
      state == nullptr ? " for weights and gradient, " : " for weights, gradient and optimizer state, ",
      training->half_weights == 0 ? "" : str_cat(mib(training->half_weights), " for weights as bf16, "),
      mib(training->activations), " for activations, ", mib(training->batch), " for the batch, ",
      mib(evaluation), " for evaluation; ", mib(training->free), " of ", mib(training->total), " are free"));
  return absl::OkStatus();
}

// The last one of a view is waited for: the next view, or the job's end, needs the state on the host.
bool Trainer::saves_beside_training() const {
  return !servers_ && replica_->on_device() != nullptr && machine_.ending() == Ending::kNone &&
         !agreed_.drain;
}

void Trainer::settle_save() {
  if (device_saver_ == nullptr) return;
  tell_saved(device_saver_->wait());
  saving_ns_ += device_saver_->take_stall().count();
}

}  // namespace paceline::trainer

// The trainer's part where devices have memory of their own: where the state is trained, and how gradients go
// from one to the other.

#include <algorithm>
#include <utility>
#include <vector>

#include "base/status.h"
#include "runtime/trainer/limits.h"
#include "runtime/trainer/passes.h"
#include "runtime/trainer/trainer.h"

namespace paceline::trainer {

namespace {
constexpr Duration kMeetingLimit = std::chrono::minutes(1);  // of members that have met once

// Whether the device is in order behind all that it was given.
absl::Status check_queue(tensor::Queue& queue) {
  absl::Status done = queue.set_mark(tensor::kMarksOfExchange);
  if (done.ok()) done = queue.wait_for_mark(tensor::kMarksOfExchange);
  return done.ok() ? done : own_fault(done);
}

}  // namespace

// The state is trained on the members' devices where all of them have memory of their own: the gradient's
// norm is a sum, and those of hosts and devices differ in their last bits.
absl::StatusOr<Trainer::Placing> Trainer::survey_devices() {
  std::vector<MemberDevice> ranks(static_cast<std::size_t>(communicator_->world_size()));
  ranks[static_cast<std::size_t>(group_.rank)] =
      member_device(workload_.make_state != nullptr, workload_.open_exchange != nullptr, workload_.device_id);
  if (ranks.size() > 1) {
    PL_RETURN_IF_ERROR(communicator_->all_gather(ranks.data(), ranks.size() * kMemberDeviceWords, DType::kI64,
                                                 Deadline::after(now(), kLoadLimit)));
  }
  programs_.set_members_on_device(members_on_device(ranks, group_.rank));
  return Placing{why_state_on_hosts(ranks), why_by_hosts(ranks, group_.rank, workload_.why_no_exchange)};
}

absl::Status Trainer::place_state(const Placing& placing) {
  if (placing.why_on_hosts.empty()) {
    PL_RETURN_IF_ERROR(place_on_device());
  } else if (const absl::Status left = replica_->leave_device(); !left.ok()) {
    return own_fault(left);
  } else {
    replica_->release_device();
    if (workload_.make_state != nullptr) {
      parts_.logger.info(
          str_cat("gradients go by way of the hosts' memory, and the optimizer's steps are the hosts': ",
                  placing.why_on_hosts));
    }
  }
  return programs_.bind_evaluation();
}

absl::Status Trainer::place_on_device() {
  if (replica_->on_device() == nullptr)  // of a view whose state was the hosts' there are copies
    PL_RETURN_IF_ERROR(programs_.unbind());
  PL_RETURN_IF_ERROR(programs_.check_lasting(Holding::kTrains));
  const absl::Status placed = replica_->to_device(workload_.make_state);
  if (absl::IsResourceExhausted(placed))  // another member was faster
    PL_RETURN_IF_ERROR(programs_.check_lasting(Holding::kTrains));
  if (placed.ok()) return placed;
  return own_fault(with_context(placed, "weights, gradient and optimizer state could not be put on it"));
}

// Null: the gradients go by way of the hosts.
absl::StatusOr<std::shared_ptr<exchange::GradientExchange>> Trainer::open_device_exchange(
    const std::string& why_not) {
  using Exchange = std::shared_ptr<exchange::GradientExchange>;
  optimizer::DeviceState* const device = replica_->on_device();
  const bool opens = why_not.empty() && device != nullptr && communicator_->world_size() > 1;
  if (!opens && workload_.let_exchange_go != nullptr) workload_.let_exchange_go();
  if (device == nullptr || communicator_->world_size() == 1) return Exchange();
  const auto by_hosts = [this](std::string_view why, bool fault) {
    const std::string text = str_cat("gradients go by way of the hosts' memory: ", why);
    // What this member itself lacks can be mended; once it is said.
    const bool lacks = !why.empty() && why == workload_.why_no_exchange;
    if (fault || (lacks && !std::exchange(lack_told_, true))) {
      parts_.logger.warning(text);
    } else {
      parts_.logger.info(text);
    }
    return Exchange();
  };
  if (!why_not.empty()) return by_hosts(why_not, /*fault=*/false);
  const Deadline deadline =
      Deadline::after(now(), kMeetingLimit + std::chrono::milliseconds(spec_.exchange().timeout_ms()));
  auto opened = try_device_exchange(*device, deadline);
  if (!opened.ok()) PL_RETURN_IF_ERROR(check_queue(device->queue()));
  PL_ASSIGN_OR_RETURN(const NotOpened not_opened, agree_on_opening(opened.status(), deadline));
  if (!not_opened.why.empty()) {
    if (opened.ok()) opened->exchange.reset();
    if (workload_.let_exchange_go != nullptr) workload_.let_exchange_go();  // not all have the like
    return by_hosts(not_opened.why, not_opened.fault);
  }
  const Exchange exchange = std::move(opened->exchange);
  links_.adopt(group_.generation,
               [links = communicator_, exchange = std::weak_ptr(exchange)](const absl::Status& reason) {
                 links->close(reason);
                 if (const Exchange open = exchange.lock()) open->close(reason);
               });
  parts_.logger.info(str_cat("gradients go from device to device",
                             opened->how.empty() ? "" : str_cat(" (", opened->how, ")")));
  return exchange;
}

// All members have met by now: nobody takes the links that are made here for those of connect().
absl::StatusOr<exchange::DeviceExchange> Trainer::try_device_exchange(optimizer::DeviceState& device,
                                                                      Deadline deadline) {
  PL_ASSIGN_OR_RETURN(auto own, parts_.fabric.connect(group_, Deadline::after(now(), kMeetingLimit)));
  return workload_.open_exchange({.spec = spec_.exchange(),
                                  .clock = parts_.clock,
                                  .links = *communicator_,
                                  .own = std::move(own),
                                  .queue = device.queue(),
                                  .gradient = device.vectors().gradients,
                                  .elements = replica_->gradient().size(),
                                  .behind = replica_->controls()},
                                 deadline);
}

// Every member comes here, however its opening ended, but one whose device is lost or who is lost itself: its
// end ends the links, and with them this. Others may have until `deadline` to come to an end.
absl::StatusOr<NotOpened> Trainer::agree_on_opening(const absl::Status& opened, Deadline deadline) {
  std::vector<Opening> ranks(static_cast<std::size_t>(communicator_->world_size()));
  ranks[static_cast<std::size_t>(group_.rank)] = opening_of(opened, group_.rank);
  const absl::Status told = communicator_->all_gather(ranks.data(), ranks.size(), DType::kI64,
                                                      Deadline(deadline.at() + kMeetingLimit));
  if (told.ok()) return why_not_opened(ranks, group_, opened);
  if (!opened.ok())
    parts_.logger.warning(str_cat("nothing sends gradients from device to device: ", opened.message()));
  return told;
}

// The last one of a view is waited for: the next view, or the job's end, needs the state on the host.
bool Trainer::saves_beside_training() const {
  return !servers_ && replica_->on_device() != nullptr && machine_.ending() == Ending::kNone &&
         !agreed_.drain;
}

void Trainer::settle_save() {
  if (device_saver_ == nullptr) return;
  if (const auto saved = device_saver_->wait()) report_saved(*saved);
  saving_ns_ += device_saver_->take_stall().count();
}

}  // namespace paceline::trainer

#include "runtime/nccl/view_exchanges.h"

#include <utility>

#include "base/guarded.h"
#include "base/status.h"
#include "base/text.h"

namespace paceline::nccl {

namespace {

// What helps whoever reads of it in a member's log.
absl::Status with_advice(const absl::Status& status) {
  if (absl::IsFailedPrecondition(status)) return status;
  absl::Status told(
      status.code(),
      str_cat("NCCL's communicator could not be opened: ", status.message(),
              "; NCCL_DEBUG=INFO in the members' environment makes NCCL say more in their logs, "
              "NCCL_SOCKET_IFNAME names the network that it is to take, and /dev/shm must have "
              "room for it"));
  status.ForEachPayload([&told](auto url, const absl::Cord& payload) { told.SetPayload(url, payload); });
  return told;
}

}  // namespace

// The communicator that the last exchange has left. None ends under its lock: that may take a second.
class ViewExchanges::Last {
 public:
  void keep(std::unique_ptr<NcclCommunicator> communicator) {
    if (!communicator->keep() || communicator->state() != State::kKept) return;
    auto kept = kept_.lock();
    if (*kept == nullptr || (*kept)->generation() < communicator->generation()) kept->swap(communicator);
  }
  std::unique_ptr<NcclCommunicator> take() { return std::move(*kept_.lock()); }

 private:
  Guarded<std::unique_ptr<NcclCommunicator>> kept_;
};

ViewExchanges::ViewExchanges(std::shared_ptr<const Library> library, Logger log,
                             std::function<void()> on_stuck, Limits limits, std::size_t least_bucket_bytes)
    : library_(std::move(library)),
      log_(std::move(log)),
      on_stuck_(std::move(on_stuck)),
      limits_(limits),
      least_bucket_bytes_(least_bucket_bytes),
      last_(std::make_shared<Last>()) {}

absl::StatusOr<exchange::DeviceExchange> ViewExchanges::open(exchange::DeviceExchangeParts parts,
                                                             cuda::Stream& stream, Deadline deadline) {
  auto communicator = NcclCommunicator::create({.library = library_,
                                                .context = stream.shared_context(),
                                                .host = std::move(parts.own),
                                                .log = log_,
                                                .limits = limits_,
                                                .keeps = true,
                                                .parent = last_->take(),
                                                .on_stuck = on_stuck_},
                                               parts.clock, deadline);
  if (!communicator.ok()) return with_advice(communicator.status());
  std::string how = str_cat("communicator ", (*communicator)->origin());
  PL_ASSIGN_OR_RETURN(auto exchange,
                      make_nccl_exchange(
                          std::move(parts), stream, *std::move(communicator),
                          [last = last_](auto left) { last->keep(std::move(left)); }, least_bucket_bytes_));
  return exchange::DeviceExchange{std::move(exchange), std::move(how)};
}

void ViewExchanges::let_go() {
  last_->take().reset();
}

}  // namespace paceline::nccl

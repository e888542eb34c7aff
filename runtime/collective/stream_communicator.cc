#include "runtime/collective/stream_communicator.h"

#include <algorithm>

#include "base/status.h"
#include "runtime/collective/fault.h"
#include "runtime/collective/tuning.h"

namespace paceline::collective {

namespace {

// How long a broken link waits for the control connection to say why: what it says was sent before the link
// broke.
constexpr Duration kExplanation = std::chrono::milliseconds(200);

}  // namespace

StreamCommunicator::StreamCommunicator(StreamWiring wiring, const Clock& clock)
    : wiring_(std::move(wiring)),
      clock_(clock),
      left_(static_cast<std::size_t>(wiring_.world)),
      runner_(*wiring_.streams, wiring_.rank, wiring_.world, wiring_.generation, wiring_.spin_turns, clock) {
  wiring_.names.resize(static_cast<std::size_t>(wiring_.world));
}

absl::Status StreamCommunicator::watch(std::vector<transport::PeerWatch::Peer> peers) {
  if (peers.empty()) return absl::OkStatus();
  PL_ASSIGN_OR_RETURN(
      watch_, transport::PeerWatch::make(std::move(peers),
                                         [this](const transport::PeerEvent& event) { on_event(event); }));
  return watch_->begin();
}

StreamCommunicator::~StreamCommunicator() {
  if (watch_ != nullptr && !closing_.is_closed()) watch_->send({transport::Notice::Type::kGoodbye, {}});
}

absl::Status StreamCommunicator::run(const Call& call, Deadline deadline) {
  if (closing_.is_closed()) return closing_.reason();
  const TimePoint began = clock_.now();
  const Traffic before = runner_.traffic();
  absl::Status status = check_call(call, wiring_.world);
  int blamed = -1;
  if (status.ok() && wiring_.world > 1) {
    const int divisor = call.op == ReduceOp::kMean ? wiring_.world : 1;
    const RunFailure failure =
        runner_.run(call, plan_for(call), divisor, deadline, [this] { return closing_.is_closed(); });
    if (!failure.status.ok()) {
      status = explain(call, failure);
      blamed = failure.rank;
    }
  }
  const Traffic after = runner_.traffic();
  bytes_sent_.fetch_add(after.bytes_sent - before.bytes_sent, std::memory_order_relaxed);
  header_bytes_sent_.fetch_add(after.header_bytes_sent - before.header_bytes_sent, std::memory_order_relaxed);
  const Duration waited = after.waited - before.waited;
  wait_ns_.fetch_add(waited.count(), std::memory_order_relaxed);
  transfer_ns_.fetch_add((clock_.now() - began - waited).count(), std::memory_order_relaxed);
  if (!status.ok()) {
    close_blaming(std::move(status), blamed);
    return closing_.reason();
  }
  operations_.fetch_add(1, std::memory_order_relaxed);
  return absl::OkStatus();
}

const Plan& StreamCommunicator::plan_for(const Call& call) {
  const std::uint64_t fingerprint = call.fingerprint();
  const auto found = std::find_if(plans_.begin(), plans_.end(), [&](const CachedPlan& cached) {
    return cached.fingerprint == fingerprint && cached.count == call.count;
  });
  if (found != plans_.end()) {
    plans_.splice(plans_.begin(), plans_, found);
  } else {
    if (plans_.size() == kMaxPlans) plans_.pop_back();
    plans_.push_front({fingerprint, call.count, make_plan(schedule_for(call))});
  }
  return plans_.front().plan;
}

Schedule StreamCommunicator::schedule_for(const Call& call) const {
  const int rank = wiring_.rank, world = wiring_.world;
  const bool mesh = world <= kFullMesh;
  const std::size_t piece = stream_piece_bytes(world) / dtype_bytes(call.dtype);
  switch (call.kind) {
    case Kind::kAllReduce:
      return all_reduce_schedule(stream_method(call, world), rank, world, call.count, piece);
    case Kind::kReduceScatter:
      return reduce_scatter_schedule(mesh, rank, world, call.count, piece);
    case Kind::kAllGather:
      return all_gather_schedule(mesh, rank, world, call.count);
    case Kind::kBroadcast:
      return broadcast_schedule(rank, world, call.count, call.root);
    case Kind::kBarrier:
      return barrier_schedule(rank, world);
  }
  return {};
}

absl::Status StreamCommunicator::explain(const Call& call, const RunFailure& failure) {
  if (closing_.is_closed()) return closing_.reason();
  if (failure.status.code() == absl::StatusCode::kDeadlineExceeded) {
    return absl::DeadlineExceededError(
        str_cat(name(failure.rank), " did not come to ", describe(call), " in time"));
  }
  if (failure.status.code() != absl::StatusCode::kUnavailable)
    return with_context(failure.status, name(failure.rank));
  // The link broke; what the peer itself or its control connection says is nearer to the cause.
  const auto rank = static_cast<std::size_t>(failure.rank);
  bool left = false;
  (void)left_.lock_when([&](const std::vector<bool>& all) { return all[rank] || closing_.is_closed(); },
                        kExplanation, &left);
  if (closing_.is_closed()) return closing_.reason();
  if (left) {
    return absl::UnavailableError(
        str_cat(name(failure.rank), " has left; rank ", wiring_.rank, " waited for it in ", describe(call)));
  }
  return absl::UnavailableError(str_cat(name(failure.rank), " is gone: ", failure.status.message()));
}

void StreamCommunicator::on_event(const transport::PeerEvent& event) {
  switch (event.kind) {
    case transport::PeerEvent::Kind::kLeft:
      (*left_.lock())[static_cast<std::size_t>(event.rank)] = true;
      break;
    case transport::PeerEvent::Kind::kAborted:
      close_blaming(absl::Status(event.fault.code, event.fault.text), event.fault.blamed_rank);
      break;
    case transport::PeerEvent::Kind::kLost:
      close_blaming(absl::UnavailableError(str_cat(name(event.rank), " is gone: ", event.fault.text)),
                    event.rank);
      break;
  }
}

// Streams are empty: a call ends well when all that its schedule sends this rank is here, and what it sent
// itself waits for peers that have it yet to read, or fail and keep nothing.
void StreamCommunicator::retire() {
  if (!closing_.close(absl::AbortedError(kRetired)) || watch_ == nullptr) return;
  std::vector<std::vector<transport::Wire>> data = wiring_.streams->take_sockets();
  std::vector<transport::MetPeer> links;
  for (transport::PeerWatch::Peer& peer : watch_->take_peers()) {
    transport::MetPeer& link = links.emplace_back();
    link.rank = peer.rank;
    link.channels.push_back(std::move(peer.control));
    for (transport::Wire& socket : data[static_cast<std::size_t>(peer.rank)])
      link.channels.push_back(std::move(socket));
  }
  wiring_.keep(std::move(links));
}

void StreamCommunicator::close(absl::Status reason) {
  close_blaming(std::move(reason), -1);
}

void StreamCommunicator::close_blaming(absl::Status reason, int blamed) {
  if (blamed >= 0) reason = with_faulty_rank(std::move(reason), blamed);
  if (!closing_.close(std::move(reason))) return;
  { auto wake = left_.lock(); }  // whoever waits in explain() looks again
  wiring_.streams->interrupt();
  if (watch_ == nullptr) return;
  const absl::Status why = closing_.reason();
  transport::Fault fault{blamed, why.code(), std::string(why.message())};
  if (why.code() == absl::StatusCode::kAborted) {  // to the others, this rank is one that went away
    fault.code = absl::StatusCode::kUnavailable;
    fault.blamed_rank = wiring_.rank;
    fault.text = str_cat(name(wiring_.rank), " closed: ", why.message());
  }
  watch_->send({transport::Notice::Type::kAbort, fault});
}

Counters StreamCommunicator::counters() const {
  Counters counters;
  counters.bytes_sent = bytes_sent_.load(std::memory_order_relaxed);
  counters.header_bytes_sent = header_bytes_sent_.load(std::memory_order_relaxed);
  counters.operations = operations_.load(std::memory_order_relaxed);
  counters.wait_ns = wait_ns_.load(std::memory_order_relaxed);
  counters.transfer_ns = transfer_ns_.load(std::memory_order_relaxed);
  counters.kept_links = wiring_.kept_links;
  return counters;
}

std::vector<Link> StreamCommunicator::links() const {
  std::vector<Link> links;
  for (int rank = 0; rank < wiring_.world; ++rank) {
    if (rank == wiring_.rank) continue;
    const auto use = transport::link_use(wiring_.streams->sockets_to(rank));
    if (use && use->bytes > 0) links.push_back({rank, *use});
  }
  return links;
}

}  // namespace paceline::collective

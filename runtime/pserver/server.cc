// The loop: poll all links, hand on what came, write what can be written. Nothing here waits but poll(2).

#include "runtime/pserver/server.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/status.h"
#include "runtime/collective/fault.h"
#include "runtime/pserver/group_shape.h"
#include "runtime/pserver/server_impl.h"
#include "runtime/transport/futex.h"
#include "runtime/transport/socket.h"

namespace paceline::pserver {

namespace {

constexpr std::size_t kReadBudget = std::size_t{1} << 20;  // of one link, before the others have their turn
constexpr std::size_t kAllThereIs = std::numeric_limits<std::size_t>::max();
constexpr int kChannels = 2;
constexpr int kTurnsPerCall = 8;  // a look at the sockets is a system call
constexpr int kLookAroundMs = 1000;

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::connect(collective::Fabric& fabric,
                                                        const collective::Group& group,
                                                        const ServerOptions& options, const Clock& clock,
                                                        Deadline deadline) {
  PL_RETURN_IF_ERROR(check_shape(group, options.shape, /*server=*/true));
  PL_RETURN_IF_ERROR(optimizer::Optimizer::create(options.optimizer, {}).status());
  PL_RETURN_IF_ERROR(sparse::check(options.shape.tables));
  const int workers = options.shape.workers;
  PL_CHECK(group.rank != workers || options.policy != nullptr, "the sequencer needs a policy");
  std::vector<int> peers;
  for (int rank = 0; rank < workers; ++rank) peers.push_back(rank);
  if (group.rank == workers) {
    for (int server = 1; server < options.shape.servers; ++server) peers.push_back(workers + server);
  } else {
    peers.push_back(workers);
  }
  PL_ASSIGN_OR_RETURN(const bool shared, fabric.shares_memory(group));
  if (shared) PL_RETURN_IF_ERROR(fabric.arena().reserve(options.shape.servers));
  PL_ASSIGN_OR_RETURN(auto links, fabric.meet(group, peers, kChannels, deadline));
  PL_ASSIGN_OR_RETURN(UniqueFd descriptor, CloseSignal::make_descriptor());
  return std::make_unique<ServerImpl>(ServerImpl::Wiring{group, std::move(links), shared}, options,
                                      fabric.arena(), clock, std::move(descriptor));
}

ServerImpl::ServerImpl(Wiring wiring, const ServerOptions& options, transport::Arena& arena,
                       const Clock& clock, UniqueFd close_descriptor)
    : options_(options),
      generation_(wiring.group.generation),
      index_(wiring.group.rank - options.shape.workers),
      shared_(wiring.shared),
      clock_(clock),
      arena_(arena),
      close_(std::move(close_descriptor)),
      workers_(static_cast<std::size_t>(options.shape.workers)),
      servers_(static_cast<std::size_t>(options.shape.servers)),
      server_left_(servers_.size()),
      spin_calls_(transport::SpinPolicy::for_members(static_cast<int>(wiring.group.members.size())).turns /
                  kTurnsPerCall) {
  for (std::size_t r = 0; r < wiring.group.members.size(); ++r) {
    names_.push_back(name_of(wiring.group, static_cast<int>(r)));
  }
  for (collective::PeerLink& peer : wiring.links) {
    const std::string& name = names_[static_cast<std::size_t>(peer.rank)];
    if (is_worker(peer.rank)) {
      Worker& of = worker(peer.rank);
      of.link = Link(std::move(peer.sockets[0]), peer.rank, name, generation_);
      of.copies = Link(std::move(peer.sockets[1]), peer.rank, name, generation_);
      of.arena = std::move(peer.arena);
      of.rows.emplace(RowInbox::Options{options_.shape.tables, index_, options_.shape.servers, shared_,
                                        of.arena.memory()});
    } else {
      transport::end_when_unanswered(peer.sockets[0].get());  // it carries short messages alone
      servers_[static_cast<std::size_t>(peer.rank - options.shape.workers)] =
          Link(std::move(peer.sockets[0]), peer.rank, name, generation_);
    }
  }
  if (sequences()) {
    sequencer_.emplace(SequencerOptions{options.shape.workers, options.shape.servers, options.optimizer});
    norms_.resize(servers_.size());
  }
}

// ---- the loop ----

absl::Status ServerImpl::run(Deadline start) {
  absl::Status ended = explained(loop(start));
  publish_rows();
  if (!ended.ok()) ended = close_.close(ended);
  send_goodbye(ended);
  (void)close_.close(absl::AbortedError("the server is done"));
  return ended;
}

absl::Status ServerImpl::loop(Deadline first) {
  ProgressDeadline start(clock_, first);
  moved_at_ = clock_.now();
  while (!all_gone()) {
    if (close_.is_closed()) return close_.reason();
    if (!ready_ && start.expired()) {
      return collective::with_faulty_rank(
          absl::DeadlineExceededError(str_cat(names_[0],
                                              " has not said what to begin with, and has sent nothing for ",
                                              format_duration(start.idle()))),
          0);
    }
    PL_RETURN_IF_ERROR(poll_once(start));
  }
  return ending();
}

absl::Status ServerImpl::poll_once(ProgressDeadline& start) {
  if (stats_asked_.exchange(false)) publish_rows();
  see_what_copies_moved();
  polled_.clear();
  polled_links_.clear();
  const auto add = [&](Link& link) {
    if (!link.valid()) return;
    polled_.push_back({link.fd(), static_cast<short>(link.drained() ? POLLIN : POLLIN | POLLOUT), 0});
    polled_links_.push_back(&link);
  };
  for (Worker& each : workers_) {
    add(each.link);
    add(each.copies);
  }
  for (std::size_t s = 0; s < servers_.size(); ++s) {
    if (!server_left_[s]) add(servers_[s]);
  }
  polled_.push_back({close_.fd(), POLLIN, 0});

  const int limit = ready_ ? kLookAroundMs : transport::poll_milliseconds(start.left(), kLookAroundMs);
  int found = 0;
  for (int turn = 0; turn <= spin_calls_ && found == 0; ++turn) {
    found = ::poll(polled_.data(), polled_.size(), turn < spin_calls_ ? 0 : limit);
  }
  if (found <= 0) return absl::OkStatus();
  const TimePoint from = clock_.now();
  for (std::size_t k = 0; k < polled_links_.size(); ++k) {
    if (polled_[k].revents == 0) continue;
    PL_RETURN_IF_ERROR(serve(*polled_links_[k], polled_[k].revents));
  }
  if (!ready_) {
    start.count(worker(0).link.bytes_received());
    moved_at_ = from - start.idle();
  }
  // What waited for worker 0 to take rows of a snapshot.
  if (next_pending_ < pending_size_ && !waits_for_factor_) {
    PL_RETURN_IF_ERROR(carry_out_pending());
    if (sequences()) PL_RETURN_IF_ERROR(follow_sequencer());  // it may have lost a worker
  }
  busy_ns_ += (clock_.now() - from).count();
  return absl::OkStatus();
}

absl::Status ServerImpl::serve(Link& link, short events) {
  if (!link.valid()) return absl::OkStatus();  // lost meanwhile
  absl::Status status;
  if ((events & POLLOUT) != 0) {
    const std::uint64_t before = link.bytes_sent();
    status = link.flush();
    const bool of_turns = is_worker(link.rank()) && &link == &worker(link.rank()).link;
    if (of_turns && link.bytes_sent() != before) transfer_moved_at_ = clock_.now();
  }
  if (status.ok() && (events & ~POLLOUT) != 0) {
    status = link.receive(*this, kReadBudget);
    // The sequencer's log: entries that came together are seen together.
    const absl::Status carried = is_worker(link.rank()) ? absl::OkStatus() : own_error(carry_out_pending());
    if (status.ok()) status = carried;
  }
  // It ends by an error of its own: what comes behind the frame that showed it is nobody's fault.
  if (!status.ok() && close_.is_closed()) return absl::OkStatus();
  const int rank = link.rank();
  if (absl::IsUnavailable(status) && is_worker(rank) && &link == &worker(rank).copies) {
    status = copies_ended(rank, status);
  }
  if (!status.ok() && is_worker(rank) && collective::faulty_rank(status) == rank) {
    lose(rank, status);
    status = absl::OkStatus();
  } else if (!status.ok() && !is_worker(rank) && absl::IsUnavailable(status) &&
             server_left_[static_cast<std::size_t>(rank - options_.shape.workers)]) {
    status = absl::OkStatus();  // it said goodbye
  }
  PL_RETURN_IF_ERROR(status);
  return sequences() ? follow_sequencer() : absl::OkStatus();
}

// Worker 0, who may hold the log up, takes some of a snapshot: weights or rows.
void ServerImpl::see_what_copies_moved() {
  const Link& copies = worker(0).copies;
  const std::uint64_t bytes = copies.bytes_sent() + copies.bytes_received();
  if (!copies.valid() || bytes == snapshot_bytes_) return;
  snapshot_bytes_ = bytes;
  moved_at_ = clock_.now();
}

// Where the worker closed it, its other connection says whether it left or is lost. Where it was cut, the
// worker is lost, unless it had left: the other one would not say so for long while weights are on their way
// (docs/protocol.md, "Who connects").
absl::Status ServerImpl::copies_ended(int rank, const absl::Status& why) {
  Worker& of = worker(rank);
  const bool cut = of.copies.cut();
  of.copies = Link();
  if (!cut) return absl::OkStatus();
  if (of.link.valid()) PL_RETURN_IF_ERROR(of.link.receive(*this, kAllThereIs));
  return of.left ? absl::OkStatus() : why;
}

// Whatever it was doing, the others go on. What it committed counts; its memory stays mapped.
void ServerImpl::lose(int rank, const absl::Status& why) {
  Worker& gone = worker(rank);
  if (!absl::IsUnavailable(why)) {  // tell it why, as far as its socket takes it
    encode(AbortMessage{static_cast<std::int32_t>(why.code()), rank, std::string(why.message())}, buffer_);
    send(gone.link, FrameKind::kAbort, 0, buffer_);
    (void)gone.link.flush();
  }
  gone.link = Link();
  gone.copies = Link();
  if (slab_.has_value()) slab_->give_back(rank);
  if (rank == 0) {
    copies_out_ = 0;
    drop_row_snapshots();
  }
  if (gone.left || gone.lost) return;
  gone.lost = true;
  last_lost_ = rank;
  if (options_.on_lost != nullptr) options_.on_lost(rank, why);
  if (sequences()) sequencer_->left(rank);
}

absl::Status ServerImpl::explained(absl::Status error) {
  if (!absl::IsUnavailable(error)) return error;
  for (Link& server : servers_) {
    if (server.valid()) (void)server.receive(*this, kReadBudget);
  }
  return told_.ok() ? error : told_;
}

bool ServerImpl::all_gone() const {
  return std::none_of(workers_.begin(), workers_.end(), [](const Worker& each) { return each.is_there(); });
}

absl::Status ServerImpl::ending() const {
  const auto left = [](const Worker& each) { return each.left; };
  if (std::any_of(workers_.begin(), workers_.end(), left)) return absl::OkStatus();
  return collective::with_faulty_rank(
      absl::UnavailableError(str_cat("all workers are gone, the last of them ",
                                     names_[static_cast<std::size_t>(last_lost_)],
                                     ", and none said goodbye")),
      last_lost_);
}

// As far as the sockets take it: nobody waits for a peer here.
void ServerImpl::send_goodbye(const absl::Status& why) {
  if (!why.ok()) {
    const int blamed = collective::faulty_rank(why).value_or(-1);
    encode(AbortMessage{static_cast<std::int32_t>(why.code()), blamed, std::string(why.message())}, buffer_);
  }
  const auto send_end = [&](Link& link) {
    if (!link.valid()) return;
    if (why.ok()) {
      send(link, FrameKind::kLeave, 0);
    } else {
      send(link, FrameKind::kAbort, 0, buffer_);
    }
    (void)link.flush();
  };
  for (Link& link : servers_) send_end(link);
  if (why.ok()) return;
  for (Worker& each : workers_) {
    send_end(each.link);
    send_end(each.copies);
  }
}

v1::ServerStats ServerImpl::stats() const {
  v1::ServerStats stats = *row_stats_.lock();
  stats_asked_ = true;
  stats.set_updates(updates_);
  stats.set_gradients(gradients_);
  stats.set_bytes_received(bytes_received_);
  stats.set_bytes_sent(bytes_sent_);
  stats.set_busy_ns(busy_ns_);
  stats.set_queue(queue_);
  return stats;
}

}  // namespace paceline::pserver

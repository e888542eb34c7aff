// What peers say. A worker's frame that makes no sense is that worker's error (the loop loses it); another
// server's closes the view.

#include <algorithm>
#include <limits>
#include <new>

#include "base/check.h"
#include "base/status.h"
#include "runtime/pserver/abort.h"
#include "runtime/pserver/server_impl.h"
#include "runtime/transport/futex.h"

namespace paceline::pserver {

namespace {

constexpr std::size_t kFloat = sizeof(float);

}  // namespace

void ServerImpl::send(Link& link, FrameKind kind, std::int64_t number, Bytes message, std::int32_t rank) {
  link.send({.kind = kind, .rank = rank, .number = number}, message);
}

absl::StatusOr<std::span<std::byte>> ServerImpl::place(Link& link, const FrameHeader& header,
                                                       std::uint64_t at) {
  if (is_worker(link.rank())) transfer_moved_at_ = clock_.now();
  const std::uint64_t count = header.length / kFloat;
  std::span<float> memory;
  if (header.kind == FrameKind::kState && link.rank() == 0 && begun_ && !ready_ && header.number >= 0 &&
      header.number <= static_cast<std::int64_t>(begin_.optimizer.size())) {
    memory = vector_of_state(static_cast<std::size_t>(header.number));
    if (count > expected_state_) return unexpected(header);
  } else if (header.kind == FrameKind::kGradient && is_worker(link.rank()) && !shared_) {
    Worker& from = worker(link.rank());
    if (from.slot.empty() || from.held || (from.arrived > 0 && from.unit != header.number)) {
      return unexpected(header);
    }
    from.unit = header.number;
    memory = from.slot;
  } else if (RowInbox::knows(header.kind) && is_worker(link.rank())) {
    const Worker& from = worker(link.rank());
    if (!ready_ || from.held) return unexpected(header);
    return worker(link.rank()).rows->place(header, at);
  } else {
    return unexpected(header);
  }
  if (header.begin > memory.size() || count > memory.size() - header.begin) {
    return absl::InvalidArgumentError(
        str_cat("sent ", count, " floats to place ", header.begin, " of ", memory.size()));
  }
  return std::as_writable_bytes(memory.subspan(header.begin, count)).subspan(at);
}

absl::Status ServerImpl::received(Link& link, const FrameHeader& header, Bytes message) {
  if (header.kind == FrameKind::kAbort) {
    const absl::Status told = read_abort(link, message, names_.size());
    if (!is_worker(link.rank())) told_ = told;
    return told;
  }
  if (is_worker(link.rank())) {
    const bool on_copies = &link == &worker(link.rank()).copies;
    const bool of_copies = header.kind == FrameKind::kTaken || header.kind == FrameKind::kTakeRows;
    if (on_copies != of_copies) return unexpected(header);
    return from_worker(link.rank(), header, message);
  }
  return from_server(link.rank() - options_.shape.workers, header, message);
}

// ---- workers ----

absl::Status ServerImpl::from_worker(int rank, const FrameHeader& header, Bytes message) {
  Worker& from = worker(rank);
  if (from.left) return unexpected(header);
  if (RowInbox::knows(header.kind)) return from_worker_rows(rank, header, message);
  switch (header.kind) {
    case FrameKind::kJoin:
      return on_join(rank, message);
    case FrameKind::kBegin:
      return on_begin(rank, message);
    case FrameKind::kState:
      return on_state(header);
    case FrameKind::kGradient:
      from.arrived += header.length / kFloat;
      bytes_received_ += header.length;
      return absl::OkStatus();
    case FrameKind::kCommit:
      return on_commit(rank, header, message);
    case FrameKind::kLeave:
      from.left = true;
      if (slab_.has_value()) slab_->give_back(rank);
      if (rank == 0) drop_row_snapshots();
      if (sequences()) sequencer_->left(rank);
      return absl::OkStatus();
    case FrameKind::kTaken:
      if (rank != 0 || copies_out_ == 0) return unexpected(header);
      if (--copies_out_ == 0) drop_row_snapshots();
      return absl::OkStatus();
    case FrameKind::kTakeRows:
      return on_take_rows(rank, header);
    case FrameKind::kAsk:
      return answer_ask(rank);
    case FrameKind::kLoading:
      return rank == 0 && !begun_ ? absl::OkStatus() : unexpected(header);
    case FrameKind::kSavedRows:
      return rank == 0 ? on_saved_rows(header, message) : unexpected(header);
    case FrameKind::kRowsRestored:
      return rank == 0 ? on_rows_restored(header) : unexpected(header);
    default:
      break;
  }
  if (!sequences()) return unexpected(header);
  switch (header.kind) {
    case FrameKind::kWish: {
      Wishes wishes;
      PL_RETURN_IF_ERROR(decode(message, wishes));
      return sequencer_->wished(rank, wishes);
    }
    case FrameKind::kSnapshot:
      return rank == 0 ? sequencer_->snapshot() : unexpected(header);
    default:
      return unexpected(header);
  }
}

absl::Status ServerImpl::answer_ask(int rank) {
  const TimePoint now = clock_.now();
  WaitingMessage answer;
  if (sequences()) answer.rank = sequencer_->waits_for(rank);
  answer.hold = hold_;
  if (hold_ != WaitingMessage::Hold::kNone) {
    answer.idle = now - moved_at_;
  } else if (const auto last = std::max(released_at_, transfer_moved_at_); last.has_value()) {
    answer.idle = now - *last;
  }
  encode(answer, buffer_);
  Link& to = worker(rank).link;
  send(to, FrameKind::kWaiting, 0, buffer_);
  return to.flush();
}

absl::Status ServerImpl::on_join(int rank, Bytes message) {
  Worker& from = worker(rank);
  JoinMessage join;
  PL_RETURN_IF_ERROR(decode(message, join));
  if (from.joined) return absl::InvalidArgumentError("joined twice");
  const std::size_t slice_bytes = ShardMap(0, 1, options_.shape.slice_bytes).slice_bytes();
  if (join.slice_bytes != slice_bytes || join.shared != shared_) {
    return absl::FailedPreconditionError(str_cat("cuts the weights into slices of ", join.slice_bytes,
                                                 " bytes, the servers of ", slice_bytes,
                                                 "; all members must be told the same"));
  }
  if (join.tables != fingerprint(options_.shape.tables)) {
    return absl::FailedPreconditionError(str_cat("has other sparse tables, or other settings of them, than ",
                                                 "the servers (", names_of(options_.shape.tables),
                                                 "); all members must be told the same"));
  }
  if (shared_) {
    const std::size_t size = from.arena.memory().size();
    const std::uint64_t reads_end =
        join.reads + static_cast<std::uint64_t>(options_.shape.servers) * kReadCountBytes;
    const bool fits = join.gradient <= size && join.elements <= (size - join.gradient) / kFloat &&
                      join.gradient % kFloat == 0 && join.reads % kReadCountBytes == 0 &&
                      join.reads <= size && reads_end <= size;
    if (!fits) return absl::InvalidArgumentError("its gradient does not lie in its arena");
    const std::byte* const base = from.arena.memory().data();
    from.gradient = reinterpret_cast<const float*>(base + join.gradient);
    from.reads = reinterpret_cast<const ReadCount*>(base + join.reads +
                                                    static_cast<std::size_t>(index_) * kReadCountBytes);
  }
  from.joined = true;
  from.elements = join.elements;
  if (begun_) PL_RETURN_IF_ERROR(check_join(rank));
  if (sequences()) sequencer_->joined(rank);
  return absl::OkStatus();
}

absl::Status ServerImpl::check_join(int rank) {
  Worker& from = worker(rank);
  if (from.elements != begin_.elements) {
    return absl::FailedPreconditionError(str_cat("has a model of ", from.elements, " elements, ", names_[0],
                                                 " one of ", begin_.elements,
                                                 "; all members must train the same model"));
  }
  if (!shared_) {
    const auto slot = slab_->of_worker(rank, Slab::Use::kGradient);
    if (!slot.ok()) return own_error(with_context(slot.status(), str_cat("gradients of ", from.link.name())));
    from.slot = *slot;
  }
  return absl::OkStatus();
}

// Worker 0's: from here on it is known how much this server holds.
absl::Status ServerImpl::on_begin(int rank, Bytes message) {
  if (rank != 0 || begun_) {
    return absl::InvalidArgumentError("says what to begin with, which worker 0 does, once");
  }
  PL_RETURN_IF_ERROR(decode(message, begin_));
  PL_RETURN_IF_ERROR(own_error(make_room()));
  if (close_.is_closed()) return absl::OkStatus();
  std::vector<std::string> states;
  for (const optimizer::StateVector& vector : optimizer_->state()) states.emplace_back(vector.name);
  if (!begin_.optimizer.empty() && begin_.optimizer != states) {
    return absl::InvalidArgumentError(str_cat(
        "brings ", begin_.optimizer.size(), " vectors of optimizer state (", begin_.optimizer.front(),
        ", ...), this optimizer has ", states.size(), " (", states.empty() ? "" : states.front(), ", ...)"));
  }
  expected_state_ = map_->share(index_) * (1 + begin_.optimizer.size());
  begun_ = true;
  for (int other = 0; other < options_.shape.workers; ++other) {
    if (!worker(other).joined) continue;
    const absl::Status fits = check_join(other);
    if (!fits.ok() && other == rank) return fits;
    if (!fits.ok()) lose(other, worker(other).link.blame(fits));
  }
  if (sequences()) {
    auto policy = options_.policy(begin_.start);
    if (!policy.ok()) return own_error(policy.status());
    sequencer_->begin(*std::move(policy), begin_.start);
  }
  return ready_when_whole();
}

// What this server holds, from worker 0's word on.
absl::Status ServerImpl::make_room() {
  map_.emplace(begin_.elements, options_.shape.servers, options_.shape.slice_bytes);
  const std::size_t share = map_->share(index_);

  // The slab's layout: the slices, cut where decay begins or ends.
  tensor::ParameterLayout layout{.parameters = {}, .elements = share, .trained_elements = share};
  for (const Slice& slice : map_->slices(index_)) {
    std::size_t at = slice.begin;
    const std::size_t end = slice.begin + slice.count;
    while (at < end) {
      const auto next = std::upper_bound(begin_.decay.begin(), begin_.decay.end(), at);
      const bool decays = (next - begin_.decay.begin()) % 2 == 1;
      const std::size_t until = next == begin_.decay.end() ? end : std::min<std::size_t>(*next, end);
      layout.parameters.push_back({.name = {},
                                   .dims = {},
                                   .offset = slice.slab + (at - slice.begin),
                                   .count = until - at,
                                   .decay = decays});
      at = until;
    }
  }
  PL_ASSIGN_OR_RETURN(auto optimizer, optimizer::Optimizer::create(options_.optimizer, layout));
  optimizer_.emplace(std::move(optimizer));
  if (may_read_ahead(share)) {
    PL_ASSIGN_OR_RETURN(const std::span<std::byte> memory, arena_.allocate(sizeof(MadeCount)));
    made_ = new (memory.data()) MadeCount(0);
  }
  slab_.emplace(arena_, share, options_.shape.workers);
  PL_RETURN_IF_ERROR(slab_->check(dense_need()));
  PL_RETURN_IF_ERROR(slab_->open());
  optimizer_->set_steps(begin_.optimizer_steps);
  for (const sparse::TableSpec& spec : options_.shape.tables) {
    tables_.emplace_back(spec, options_.shape.servers);
    tables_.back().set_clock(begin_.optimizer_steps);  // a table counts the same updates
  }
  rows_restored_ = tables_.empty();
  const auto parts = static_cast<float>(options_.units_per_step);
  updater_.emplace(map_->slices(index_), share, static_cast<float>(options_.delay_compensation) * parts);
  return absl::OkStatus();
}

bool ServerImpl::may_read_ahead(std::size_t share) const {
  const int members = options_.shape.workers + options_.shape.servers;
  const bool cores = transport::SpinPolicy::for_members(members).turns == transport::SpinPolicy::kTurns;
  return shared_ && share >= options_.ahead_floats && (cores || options_.ahead_floats == 0);
}

SlabNeed ServerImpl::dense_need() {
  const auto workers = static_cast<std::size_t>(options_.shape.workers);
  return {.weights = 1 + (options_.holds.older_weights ? workers : 0),
          .gradients = shared_ ? 0 : workers,
          .kept = options_.holds.put_aside ? workers : 0,
          .read = options_.delay_compensation > 0 ? workers : 0,
          .copies = 1 + optimizer_->state().size()};
}

std::span<float> ServerImpl::vector_of_state(std::size_t k) {
  return k == 0 ? slab_->weights() : optimizer_->state()[k - 1].values;
}

absl::Status ServerImpl::on_state(const FrameHeader& header) {
  const std::uint64_t count = header.length / kFloat;
  if (!begun_ || ready_ || count > expected_state_) return unexpected(header);
  expected_state_ -= count;
  return ready_when_whole();
}

absl::Status ServerImpl::ready_when_whole() {
  if (!begun_ || expected_state_ > 0 || !rows_restored_) return absl::OkStatus();
  ready_ = true;
  hold_ = WaitingMessage::Hold::kNone;
  released_at_ = clock_.now();
  if (sequences()) {
    sequencer_->ready(index_);
    return absl::OkStatus();
  }
  send(servers_[0], FrameKind::kReady, 0);
  return servers_[0].flush();
}

absl::Status ServerImpl::on_commit(int rank, const FrameHeader& header, Bytes message) {
  Worker& from = worker(rank);
  if (!ready_ || !from.joined || from.held || header.number < 0) return unexpected(header);
  if (!shared_ && (from.arrived != from.slot.size() || (from.arrived > 0 && from.unit != header.number))) {
    return absl::InvalidArgumentError(str_cat("committed unit ", header.number, " with ", from.arrived,
                                              " of ", from.slot.size(), " elements pushed"));
  }
  PL_RETURN_IF_ERROR(from.rows->check_commit(header.number));
  if (shared_) bytes_received_ += (slab_->elements() + from.rows->pushed_floats()) * kFloat;
  from.unit = header.number;
  from.held = true;
  ++gradients_;
  if (sequences()) {
    CommitMessage commit;
    PL_RETURN_IF_ERROR(decode(message, commit));
    PL_RETURN_IF_ERROR(sequencer_->committed(rank, header.number, commit));
    return sequencer_->held(rank, header.number, index_);
  }
  send(servers_[0], FrameKind::kHeld, header.number, {}, rank);
  return servers_[0].flush();
}

// ---- servers ----

absl::Status ServerImpl::from_server(int index, const FrameHeader& header, Bytes message) {
  if (header.kind == FrameKind::kLeave) {
    server_left_[static_cast<std::size_t>(index)] = true;
    return absl::OkStatus();
  }
  if (sequences()) {
    switch (header.kind) {
      case FrameKind::kReady:
        sequencer_->ready(index);
        return absl::OkStatus();
      case FrameKind::kHeld: {
        if (header.rank < 0 || !is_worker(header.rank)) return unexpected(header);
        // A worker's fault, whoever tells of it.
        const absl::Status held = sequencer_->held(header.rank, header.number, index);
        if (!held.ok()) lose(header.rank, worker(header.rank).link.blame(held));
        return absl::OkStatus();
      }
      case FrameKind::kNorm: {
        double squares = 0;
        PL_RETURN_IF_ERROR(decode(message, squares));
        PL_RETURN_IF_ERROR(own_error(norm_known(index, header.number, squares)));
        return own_error(carry_out_pending());
      }
      default:
        return unexpected(header);
    }
  }
  switch (header.kind) {
    case FrameKind::kLog:
      PL_RETURN_IF_ERROR(decode(message, decoded_.entry));
      append(decoded_);  // carried out once what came with it is here: serve()
      return absl::OkStatus();
    case FrameKind::kFactor: {
      double factor = 0;
      PL_RETURN_IF_ERROR(decode(message, factor));
      PL_RETURN_IF_ERROR(own_error(factor_known(header.number, factor)));
      return own_error(carry_out_pending());
    }
    default:
      return unexpected(header);
  }
}

}  // namespace paceline::pserver

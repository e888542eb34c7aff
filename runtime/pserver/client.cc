#include "runtime/pserver/client.h"

#include <sys/socket.h>

#include <algorithm>
#include <new>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "runtime/collective/fault.h"
#include "runtime/pserver/abort.h"
#include "runtime/pserver/client_impl.h"
#include "runtime/pserver/group_shape.h"
#include "runtime/transport/futex.h"

namespace paceline::pserver {

namespace {

constexpr int kChannels = 2;
constexpr int kTurnsPerCall = 8;  // a look at the sockets is a system call

// begin, end, begin, end, ... of what decays.
std::vector<std::uint64_t> decay_of(const tensor::ParameterLayout& layout) {
  std::vector<std::uint64_t> ends;
  for (const tensor::Parameter& parameter : layout.parameters) {
    if (!parameter.decay) continue;
    if (!ends.empty() && ends.back() == parameter.offset) {
      ends.back() += parameter.count;
    } else {
      ends.push_back(parameter.offset);
      ends.push_back(parameter.offset + parameter.count);
    }
  }
  return ends;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Client>> Client::connect(collective::Fabric& fabric,
                                                        const collective::Group& group,
                                                        const ClientOptions& options,
                                                        const tensor::ParameterLayout& layout,
                                                        std::span<float> weights, std::span<float> gradient,
                                                        const Clock& clock, Deadline deadline) {
  PL_RETURN_IF_ERROR(check_shape(group, options, /*server=*/false));
  PL_RETURN_IF_ERROR(sparse::check(options.tables));
  if (weights.size() != layout.elements || gradient.size() != layout.elements) {
    return absl::InvalidArgumentError(str_cat("weights of ", weights.size(), " and a gradient of ",
                                              gradient.size(), " elements for a model of ", layout.elements));
  }
  if (!fabric.arena().contains(gradient.data(), gradient.size_bytes())) {
    return absl::InvalidArgumentError("the gradient does not lie in the fabric's arena");
  }
  ClientImpl::Wiring wiring{
      .group = group, .links = {}, .arena = &fabric.arena(), .reads = {}, .decay = decay_of(layout)};
  if (wiring.decay.size() > 2 * kMaxDecayRanges) {
    return absl::InvalidArgumentError(str_cat("weight decay changes ", wiring.decay.size(),
                                              " times along the weights, at most ", 2 * kMaxDecayRanges));
  }
  PL_ASSIGN_OR_RETURN(wiring.shared, fabric.shares_memory(group));
  std::vector<int> peers(static_cast<std::size_t>(options.servers));
  std::iota(peers.begin(), peers.end(), options.workers);
  if (wiring.shared) {  // before they meet, who map what there is
    PL_ASSIGN_OR_RETURN(wiring.reads, fabric.arena().allocate(peers.size() * kReadCountBytes));
    wiring.gradient = fabric.arena().offset_of(gradient.data());
    wiring.reads_at = fabric.arena().offset_of(wiring.reads.data());
  }
  PL_ASSIGN_OR_RETURN(wiring.links, fabric.meet(group, peers, kChannels, deadline));
  PL_ASSIGN_OR_RETURN(UniqueFd closing, CloseSignal::make_descriptor());
  PL_ASSIGN_OR_RETURN(UniqueFd interrupting, CloseSignal::make_descriptor());
  auto client = std::make_unique<ClientImpl>(std::move(wiring), options, weights, gradient, clock,
                                             std::move(closing), std::move(interrupting));
  PL_RETURN_IF_ERROR(client->join());
  return client;
}

ClientImpl::ClientImpl(Wiring wiring, const ClientOptions& options, std::span<float> weights,
                       std::span<float> gradient, const Clock& clock, UniqueFd close_descriptor,
                       UniqueFd interrupt_descriptor)
    : options_(options),
      rank_(wiring.group.rank),
      shared_(wiring.shared),
      weights_(weights),
      gradient_(gradient),
      clock_(clock),
      map_(gradient.size(), options.servers, options.slice_bytes),
      close_(std::move(close_descriptor)),
      interrupt_(std::move(interrupt_descriptor)),
      arena_(*wiring.arena),
      reads_(wiring.reads),
      reads_at_(wiring.reads_at),
      gradient_at_(wiring.gradient),
      decay_(std::move(wiring.decay)),
      servers_(static_cast<std::size_t>(options.servers)),
      spin_calls_(transport::SpinPolicy::for_members(static_cast<int>(wiring.group.members.size())).turns /
                  kTurnsPerCall),
      pull_(options_.tables, options.servers),
      push_(options_.tables, options.servers) {
  for (std::size_t r = 0; r < wiring.group.members.size(); ++r) {
    names_.push_back(name_of(wiring.group, static_cast<int>(r)));
  }
  for (collective::PeerLink& peer : wiring.links) {
    const std::string& name = names_[static_cast<std::size_t>(peer.rank)];
    Server& of = server(peer.rank - options_.workers);
    of.link = Link(std::move(peer.sockets[0]), peer.rank, name, wiring.group.generation);
    of.copies = Link(std::move(peer.sockets[1]), peer.rank, name, wiring.group.generation);
    of.arena = std::move(peer.arena);
  }
  if (shared_) {
    for (std::size_t s = 0; s < servers_.size(); ++s) new (reads_.data() + s * kReadCountBytes) ReadCount(0);
  }
  polled_.reserve(servers_.size() + 2);
}

void ClientImpl::send(Link& link, FrameKind kind, std::int64_t number, Bytes message) {
  link.send({.kind = kind, .rank = rank_, .number = number}, message);
}

absl::Status ClientImpl::join() {
  encode(JoinMessage{map_.elements(), map_.slice_bytes(), shared_, gradient_at_, reads_at_,
                     fingerprint(options_.tables)},
         buffer_);
  for (Server& each : servers_) send(each.link, FrameKind::kJoin, 0, buffer_);
  return flush_all();
}

// ---- the beginning ----

void ClientImpl::send_state(std::size_t vector, std::span<const float> values) {
  map_.each_piece(0, values.size(), [&](int to, std::size_t begin, std::size_t slab, std::size_t count) {
    server(to).link.send_floats({.kind = FrameKind::kState,
                                 .rank = rank_,
                                 .number = static_cast<std::int64_t>(vector),
                                 .begin = slab},
                                values.subspan(begin, count));
  });
}

absl::Status ClientImpl::report_loading() {
  if (close_.is_closed()) return close_.reason();
  PL_CHECK(rank_ == 0, "worker 0 says what the servers begin with");
  for (Server& each : servers_) {
    if (each.link.drained()) send(each.link, FrameKind::kLoading, 0);
  }
  return flush_all();
}

absl::Status ClientImpl::initialize(const InitialState& state, Deadline deadline) {
  if (close_.is_closed()) return close_.reason();
  if (interrupted()) return interrupt_.reason();
  PL_CHECK(rank_ == 0, "worker 0 says what the servers begin with");
  PL_CHECK(state.weights.size() == map_.elements(), "weights as long as the model");
  BeginMessage begin{.elements = map_.elements(),
                     .decay = decay_,
                     .optimizer = {},
                     .optimizer_steps = state.optimizer_steps,
                     .start = state.start};
  for (const auto& vector : state.optimizer) {
    PL_CHECK(vector.values.size() == map_.elements(), "optimizer state as long as the model");
    begin.optimizer.push_back(vector.name);
  }
  encode(begin, buffer_);
  for (Server& each : servers_) send(each.link, FrameKind::kBegin, 0, buffer_);
  send_state(0, state.weights);
  for (std::size_t k = 0; k < state.optimizer.size(); ++k) send_state(k + 1, state.optimizer[k].values);
  ProgressDeadline progress(clock_, deadline);
  PL_RETURN_IF_ERROR(drain("the weights", progress));
  return options_.tables.empty() ? absl::OkStatus() : send_initial_rows(state.rows, progress);
}

// ---- a unit ----

absl::Status ClientImpl::push(std::size_t begin, std::size_t end) {
  if (close_.is_closed()) return close_.reason();
  PL_CHECK(unit_ >= 0 && begin <= end && end <= gradient_.size(), "a range of the gradient, in a turn");
  const TimePoint from = clock_.now();
  pushed_ += end - begin;
  bytes_sent_ += (end - begin) * sizeof(float);
  if (shared_) return absl::OkStatus();  // the servers read it where it lies
  map_.each_piece(begin, end, [&](int to, std::size_t at, std::size_t slab, std::size_t count) {
    server(to).link.send_floats({.kind = FrameKind::kGradient, .rank = rank_, .number = unit_, .begin = slab},
                                std::span<const float>(gradient_).subspan(at, count));
  });
  const absl::Status flushed = flush_all();
  times_.transfer += clock_.now() - from;
  return flushed;
}

absl::Status ClientImpl::commit(const Commit& commit) {
  if (close_.is_closed()) return close_.reason();
  PL_CHECK(unit_ >= 0, "a commit belongs to a turn");
  PL_CHECK(pushed_ == gradient_.size(), "all of the gradient is pushed before it is committed");
  const TimePoint from = clock_.now();
  encode(CommitMessage{commit.loss_sum, commit.samples, commit.wishes}, buffer_);
  for (int s = 0; s < options_.servers; ++s) {
    send(server(s).link, FrameKind::kCommit, unit_, s == 0 ? Bytes(buffer_) : Bytes());
  }
  unit_ = -1;
  may_pull_ = rows_pushed_now_ = false;
  const absl::Status flushed = flush_all();
  times_.transfer += clock_.now() - from;
  return flushed;
}

absl::Status ClientImpl::wish(const Wishes& wishes) {
  if (close_.is_closed()) return close_.reason();
  encode(wishes, buffer_);
  send(server(0).link, FrameKind::kWish, 0, buffer_);
  return flush_all();
}

absl::Status ClientImpl::leave() {
  if (close_.is_closed()) return close_.reason();
  for (Server& each : servers_) send(each.link, FrameKind::kLeave, 0);
  return flush_all();
}

absl::StatusOr<TurnResult> ClientImpl::wait_turn(Deadline deadline) {
  if (close_.is_closed()) return close_.reason();
  PL_CHECK(unit_ < 0, "the last turn is committed before the next is waited for");
  const TimePoint from = clock_.now();
  const Duration wait_before = times_.wait;
  PL_RETURN_IF_ERROR(wait_for_turn(deadline));
  for (Server& each : servers_) {
    if (each.version != turn_->version) {
      return fail(each.link.blame(absl::InvalidArgumentError(
          str_cat("sent weights of version ", each.version, " for a turn at ", turn_->version))));
    }
    each.has_weights = false;
  }
  const TurnResult turn = *turn_;
  turn_.reset();
  bytes_came_ = false;
  unit_ = turn.finished ? -1 : turn.unit;
  may_pull_ = true;
  pushed_ = 0;
  const Duration waited = times_.wait - wait_before;
  times_.transfer += (clock_.now() - from) - waited;
  count_turn(turn, waited);
  count_frames();
  return turn;
}

void ClientImpl::count_frames() {
  ClientCounters all;
  for (const Server& each : servers_) {
    all.frames_sent += each.link.frames_sent();
    all.frames_received += each.link.frames_received();
    all.round_trips += each.link.answers();
  }
  frames_sent_ = all.frames_sent;
  frames_received_ = all.frames_received;
  round_trips_ = all.round_trips;
}

void ClientImpl::count_turn(const TurnResult& turn, Duration waited) {
  auto counts = staleness_.lock();
  counts->wait_ns += waited.count();
  if (turn.dropped) {
    ++counts->dropped;
  } else if (turn.staleness >= 0) {
    ++counts->applied;
    counts->sum += turn.staleness;
    counts->max = std::max(counts->max, turn.staleness);
    ++counts->histogram[std::min<std::size_t>(static_cast<std::size_t>(turn.staleness), kHistogram - 1)];
  }
}

// ---- frames ----

absl::StatusOr<std::span<std::byte>> ClientImpl::place(Link& link, const FrameHeader& header,
                                                       std::uint64_t at) {
  const int index = index_of(link);
  if (header.kind == FrameKind::kRows) return place_rows(index, header, at);
  if (header.kind != FrameKind::kWeights || shared_ || server(index).has_weights || unit_ >= 0 ||
      header.length != map_.share(index) * sizeof(float)) {
    return unexpected(header);
  }
  bytes_came_ = true;
  return bytes_of_share(map_, index, weights_, at);
}

absl::Status ClientImpl::received(Link& link, const FrameHeader& header, Bytes message) {
  const int index = index_of(link);
  switch (header.kind) {
    case FrameKind::kAbort:
      told_ = read_abort(link, message, names_.size());
      return told_;
    case FrameKind::kWeights:
      return on_weights(index, header);
    case FrameKind::kComing:
      return on_coming(index, header, message);
    case FrameKind::kRows:
      return on_rows(index, header);
    case FrameKind::kTurn: {
      if (index != 0 || turn_.has_value() || unit_ >= 0) return unexpected(header);
      TurnResult turn;
      PL_RETURN_IF_ERROR(decode(message, turn));
      turn_ = turn;
      return absl::OkStatus();
    }
    case FrameKind::kWaiting: {
      WaitingMessage said;
      PL_RETURN_IF_ERROR(decode(message, said));
      server(index).waits_for = said;
      return absl::OkStatus();
    }
    default:
      return unexpected(header);
  }
}

absl::Status ClientImpl::on_weights(int index, const FrameHeader& header) {
  Server& from = server(index);
  if (from.has_weights || unit_ >= 0) return unexpected(header);
  const std::size_t share = map_.share(index);
  if (shared_) {
    PL_ASSIGN_OR_RETURN(const float* const slab, find_share(from.arena, header.begin, share));
    const bool was_coming = from.coming.has_value() && from.coming->begin == header.begin &&
                            from.coming->version == header.number;
    copy_share(map_, index, slab, was_coming ? from.coming->read : 0, share, weights_);
    from.coming.reset();
    auto* const count =
        reinterpret_cast<ReadCount*>(reads_.data() + static_cast<std::size_t>(index) * kReadCountBytes);
    count->store(++from.reads, std::memory_order_release);
  } else if (header.length != share * sizeof(float)) {
    return unexpected(header);
  }
  from.has_weights = true;
  from.version = header.number;
  bytes_came_ = true;
  bytes_received_ += share * sizeof(float);
  return absl::OkStatus();
}

// ---- the end ----

void ClientImpl::close(absl::Status reason) {
  (void)close_.close(std::move(reason));
  for (const Server& each : servers_) {  // the servers hear of it at once
    ::shutdown(each.link.fd(), SHUT_RDWR);
    ::shutdown(each.copies.fd(), SHUT_RDWR);
  }
}

v1::StalenessStats ClientImpl::staleness() const {
  const Staleness counts = *staleness_.lock();
  v1::StalenessStats stats;
  stats.set_applied(counts.applied);
  stats.set_dropped(counts.dropped);
  for (const std::int64_t count : counts.histogram) stats.add_histogram(count);
  stats.set_mean(counts.applied > 0 ? static_cast<double>(counts.sum) / static_cast<double>(counts.applied)
                                    : 0);
  stats.set_max(counts.max);
  stats.set_wait_seconds(static_cast<double>(counts.wait_ns) * 1e-9);
  return stats;
}

}  // namespace paceline::pserver

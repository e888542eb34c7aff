// What the log's entries do to the weights. Entries are carried out in order; an update that clips stops
// those behind it until the sequencer has every server's part of the gradient's norm.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "base/status.h"
#include "runtime/pserver/server_impl.h"
#include "runtime/tensor/cpu/kernels/kernels.h"

namespace paceline::pserver {

namespace {
constexpr std::size_t kTakenBudget = 4096;  // bytes
}  // namespace

absl::Status ServerImpl::own_error(absl::Status status) {
  if (!status.ok()) (void)close_.close(std::move(status));
  return absl::OkStatus();
}

absl::Status ServerImpl::follow_sequencer() {
  for (auto steps = sequencer_->take(); !steps.empty(); steps = sequencer_->take()) {
    for (const LogStep& step : steps) {
      if (servers_.size() > 1) encode(step.entry, buffer_);
      for (Link& server : servers_) {
        if (server.valid()) send(server, FrameKind::kLog, step.entry.version, buffer_);
      }
      append(step);
    }
    for (Link& server : servers_) {
      if (server.valid()) PL_RETURN_IF_ERROR(server.flush());
    }
    PL_RETURN_IF_ERROR(carry_out_pending());
  }
  queue_ = sequencer_->queue();
  return absl::OkStatus();
}

void ServerImpl::append(const LogStep& step) {
  if (pending_size_ == pending_.size()) pending_.emplace_back();
  pending_[pending_size_++] = step;
}

absl::Status ServerImpl::carry_out_pending() {
  while (next_pending_ < pending_size_) {
    const LogStep& step = pending_[next_pending_];
    if (waits_for_factor_) {
      if (!factor_.has_value()) return absl::OkStatus();
      PL_RETURN_IF_ERROR(finish_update(step.entry));
      ++next_pending_;
      continue;
    }
    const Version expected = version_ + (step.entry.kind == LogEntry::Kind::kUpdate ? 1 : 0);
    if (!ready_ || step.entry.version != expected) {
      return absl::InvalidArgumentError(
          str_cat("the log is at version ", step.entry.version, ", this server at ", version_));
    }
    switch (step.entry.kind) {
      case LogEntry::Kind::kUpdate:
        if (held_up_by_snapshot()) return absl::OkStatus();  // until worker 0 has taken some
        PL_RETURN_IF_ERROR(update(step.entry));
        break;
      case LogEntry::Kind::kTurn:
        PL_RETURN_IF_ERROR(turn(step.entry, step.turn));
        break;
      case LogEntry::Kind::kSnapshot:
        PL_RETURN_IF_ERROR(copy(step.snapshot));
        break;
    }
    if (!waits_for_factor_) ++next_pending_;
  }
  if (next_pending_ == pending_size_) next_pending_ = pending_size_ = 0;
  return absl::OkStatus();
}

// ---- updates ----

absl::Status ServerImpl::update(const LogEntry& entry) {
  PL_RETURN_IF_ERROR(find_sources(entry));
  if (entry.clips) {
    waits_for_factor_ = true;
    double squares = updater_->sum(sources_, slab_->weights());
    PL_ASSIGN_OR_RETURN(const double of_rows, gather_rows(entry));
    squares += of_rows;
    if (sequences()) return norm_known(index_, entry.version, squares);
    encode(squares, buffer_);
    send(servers_[0], FrameKind::kNorm, entry.version, buffer_);
    return servers_[0].flush();
  }
  see_who_has_read();
  PL_ASSIGN_OR_RETURN(const std::span<float> next, slab_->next());
  announce(entry);
  updater_->update(sources_, slab_->weights(), next, entry.scale, entry.learning_rate, *optimizer_, made_);
  PL_RETURN_IF_ERROR(update_rows(entry));
  update_is_made(entry);
  return absl::OkStatus();
}

absl::Status ServerImpl::find_sources(const LogEntry& entry) {
  sources_.clear();
  for (const Contributor& each : entry.contributors) {
    const bool known = is_worker(each.worker);
    if (!known || (each.last && !worker(each.worker).held) || (each.aside && !worker(each.worker).kept)) {
      return absl::InvalidArgumentError(
          str_cat("the log counts a gradient of rank ", each.worker, " that is not here"));
    }
    const Worker& from = worker(each.worker);
    if (each.aside) {
      PL_ASSIGN_OR_RETURN(const auto kept, slab_->of_worker(each.worker, Slab::Use::kKept));
      sources_.push_back({kept.data(), /*flat=*/false, nullptr});
    }
    if (!each.last) continue;
    GradientSource source{shared_ ? from.gradient : from.slot.data(), shared_, nullptr};
    if (options_.delay_compensation > 0) {
      PL_ASSIGN_OR_RETURN(const auto read, slab_->of_worker(each.worker, Slab::Use::kRead));
      source.read = read.data();
    }
    sources_.push_back(source);
  }
  return absl::OkStatus();
}

void ServerImpl::update_is_made(const LogEntry& entry) {
  slab_->next_is_made();
  version_ = entry.version;
  ++updates_;
  for (const Contributor& each : entry.contributors) {
    Worker& from = worker(each.worker);
    if (each.aside) {
      from.kept = false;
      from.rows->drop_aside();
    }
    if (!each.last) continue;
    from.held = false;
    from.arrived = 0;
    from.rows->drop();
  }
}

// Parts are added in the order of the servers.
absl::Status ServerImpl::norm_known(int server, Version version, double squares) {
  if (version != version_ + 1) {
    return absl::InvalidArgumentError(str_cat("the norm of update ", version, " after ", version_));
  }
  norms_[static_cast<std::size_t>(server)] = squares;
  if (std::any_of(norms_.begin(), norms_.end(), [](const auto& norm) { return !norm.has_value(); })) {
    return absl::OkStatus();
  }
  double sum = 0;
  for (auto& norm : norms_) {
    sum += *norm;
    norm.reset();
  }
  const double norm = std::sqrt(sum) * static_cast<double>(pending_[next_pending_].entry.scale);
  if (!std::isfinite(norm)) {
    return absl::OutOfRangeError(
        str_cat("the gradient's norm is ", norm, " at update ", version,
                ": the training diverged; lower learningRate or clipNorm, or look at the data"));
  }
  const double limit = options_.optimizer.clip_norm();
  const double factor = norm > limit ? limit / norm : 1;
  encode(factor, buffer_);
  for (Link& other : servers_) {
    if (!other.valid()) continue;
    send(other, FrameKind::kFactor, version, buffer_);
    PL_RETURN_IF_ERROR(other.flush());
  }
  return factor_known(version, factor);
}

absl::Status ServerImpl::factor_known(Version version, double factor) {
  if (!waits_for_factor_ || version != version_ + 1) {
    return absl::InvalidArgumentError(str_cat("the factor of update ", version, " after ", version_));
  }
  factor_ = factor;
  return absl::OkStatus();
}

absl::Status ServerImpl::finish_update(const LogEntry& entry) {
  see_who_has_read();
  PL_ASSIGN_OR_RETURN(const std::span<float> next, slab_->next());
  const float factor = entry.scale * static_cast<float>(*factor_);
  announce(entry);
  updater_->step(slab_->weights(), next, factor, entry.learning_rate, *optimizer_, made_);
  step_rows(entry, factor);
  update_is_made(entry);
  waits_for_factor_ = false;
  factor_.reset();
  return absl::OkStatus();
}

// Who is given the next weights right behind their update hears where they will lie, and may read them while
// they are made.
void ServerImpl::announce(const LogEntry& entry) {
  if (made_ == nullptr) return;
  made_->store(0, std::memory_order_release);
  encode(ComingMessage{arena_.offset_of(reinterpret_cast<const std::byte*>(made_))}, buffer_);
  const FrameHeader header{
      .kind = FrameKind::kComing, .number = entry.version, .begin = slab_->next_offset()};
  for (std::size_t k = next_pending_ + 1; k < pending_size_; ++k) {
    const LogEntry& behind = pending_[k].entry;
    if (behind.kind != LogEntry::Kind::kTurn || !is_worker(behind.worker)) break;
    Worker& to = worker(behind.worker);
    if (!to.is_there() || !to.link.valid() || to.ahead == entry.version) continue;
    slab_->lend_next(behind.worker);
    ++to.lent;
    to.ahead = entry.version;
    to.link.send(header, buffer_);
    (void)to.link.flush();  // an error shows again when its turn is sent
  }
}

void ServerImpl::see_who_has_read() {
  for (int rank = 0; rank < options_.shape.workers; ++rank) {
    if (!slab_->borrows(rank)) continue;
    const Worker& reader = worker(rank);
    // One whose Join has not come yet has read nothing.
    const bool counted =
        reader.reads != nullptr && reader.reads->load(std::memory_order_acquire) >= reader.lent;
    const bool has_read = !reader.link.valid() || (shared_ ? counted : reader.link.drained());
    if (has_read) slab_->give_back(rank);
  }
}

// ---- turns ----

absl::Status ServerImpl::turn(const LogEntry& entry, const TurnResult& result) {
  if (!is_worker(entry.worker)) return absl::InvalidArgumentError("the log gives a turn to no worker");
  Worker& to = worker(entry.worker);
  if (entry.keeps && to.held) PL_RETURN_IF_ERROR(keep_aside(entry.worker));
  to.held = false;
  to.arrived = 0;
  to.rows->drop();
  if (!to.is_there() || !to.link.valid()) return absl::OkStatus();
  const std::span<const float> weights = slab_->weights();
  if (options_.delay_compensation > 0) {
    PL_ASSIGN_OR_RETURN(const auto read, slab_->of_worker(entry.worker, Slab::Use::kRead));
    std::memcpy(read.data(), weights.data(), weights.size_bytes());
  }
  if (to.ahead != entry.version) {
    slab_->lend(entry.worker);
    ++to.lent;
  }
  to.ahead = -1;
  if (sequences()) {
    encode(result, buffer_);
    send(to.link, FrameKind::kTurn, entry.version, buffer_);
  }
  FrameHeader header{.kind = FrameKind::kWeights, .number = entry.version};
  if (shared_) {
    header.begin = slab_->offset();
    to.link.send(header);
  } else {
    to.link.send_floats(header, weights);
  }
  bytes_sent_ += weights.size_bytes();
  const absl::Status sent = to.link.flush();
  if (!sent.ok()) lose(entry.worker, sent);
  return absl::OkStatus();
}

// A gradient that still waits for its update while its worker computes the next: it is added to what was put
// aside of that worker before.
absl::Status ServerImpl::keep_aside(int rank) {
  Worker& from = worker(rank);
  PL_ASSIGN_OR_RETURN(const std::span<float> kept, slab_->of_worker(rank, Slab::Use::kKept));
  for (const Slice& slice : map_->slices(index_)) {
    const float* const gradient = shared_ ? from.gradient + slice.begin : from.slot.data() + slice.slab;
    float* const to = kept.data() + slice.slab;
    if (from.kept) {
      tensor::cpu::kernels().add(to, gradient, to, slice.count);
    } else {
      std::memcpy(to, gradient, slice.count * sizeof(float));
    }
  }
  from.rows->keep_aside();
  from.kept = true;
  return absl::OkStatus();
}

// ---- snapshots ----

absl::Status ServerImpl::copy(SnapshotInfo snapshot) {
  Link& to = worker(0).copies;
  if (!to.valid()) return absl::OkStatus();
  // Worker 0 takes one before it asks for the next, but says so on this connection: that may come later.
  constexpr int kMostOut = 1;
  if (copies_out_ > 0) {
    const absl::Status heard = to.receive(*this, kTakenBudget);
    if (absl::IsUnavailable(heard) && !to.cut()) {  // whether it left or is lost, its other connection says
      to = Link();
      return absl::OkStatus();
    }
    if (!heard.ok()) {
      lose(0, heard);
      return absl::OkStatus();
    }
  }
  if (copies_out_ > kMostOut || !to.drained()) {
    lose(0,
         worker(0).link.blame(absl::FailedPreconditionError("began a snapshot before it took the last one")));
    return absl::OkStatus();
  }
  ++copies_out_;
  snapshot.optimizer_steps = optimizer_->steps();
  encode(snapshot, buffer_);
  if (sequences()) send(to, FrameKind::kCopy, version_, buffer_);
  mark_tables();
  const std::size_t vectors = 1 + optimizer_->state().size();
  for (std::size_t k = 0; k < vectors; ++k) {
    PL_ASSIGN_OR_RETURN(const std::span<float> memory, slab_->copy(k));
    const std::span<const float> from = vector_of_state(k);
    if (!from.empty()) std::memcpy(memory.data(), from.data(), from.size_bytes());
    FrameHeader header{.kind = FrameKind::kCopied, .rank = static_cast<std::int32_t>(k), .number = version_};
    if (shared_) {
      header.begin = slab_->offset_of(memory);
      to.send(header);
    } else {
      to.send_floats(header, memory);
    }
  }
  const absl::Status sent = to.flush();
  if (!sent.ok()) lose(0, sent);
  return absl::OkStatus();
}

}  // namespace paceline::pserver

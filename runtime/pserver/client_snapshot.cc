// Snapshots: each server sends its part of one version, and the sequencer what version it is, over
// connections that carry nothing else.

#include <poll.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/status.h"
#include "runtime/pserver/abort.h"
#include "runtime/pserver/client_impl.h"
#include "runtime/transport/socket.h"

namespace paceline::pserver {

namespace {

// Puts together what the servers send.
class Collector final : public FrameReceiver {
 public:
  Collector(const ShardMap& map, std::vector<std::span<float>> vectors, std::size_t tables, int first_rank,
            bool shared)
      : map_(map),
        vectors_(std::move(vectors)),
        tables_(tables),
        first_rank_(first_rank),
        shared_(shared),
        parts_(static_cast<std::size_t>(map.servers())) {}

  // A server's arena, and where the marks of its tables go.
  void set_server(int index, const transport::Mapping* arena, TablesMessage* marks) {
    part(index).arena = arena;
    part(index).marks = marks;
    marks->clear();
  }

  bool done() const {
    return info_.has_value() &&
           std::all_of(parts_.begin(), parts_.end(), [&](const Part& each) { return whole(each); });
  }
  // The first server whose part is not whole.
  int missing() const {
    for (std::size_t s = 0; s < parts_.size(); ++s) {
      if (!whole(parts_[s])) return static_cast<int>(s);
    }
    return 0;
  }
  const SnapshotInfo& info() const { return *info_; }

  absl::StatusOr<std::span<std::byte>> place(Link& link, const FrameHeader& header,
                                             std::uint64_t at) override {
    const int index = link.rank() - first_rank_;
    PL_RETURN_IF_ERROR(check(index, header));
    if (shared_ || header.length != map_.share(index) * sizeof(float)) return unexpected(header);
    return bytes_of_share(map_, index, vectors_[static_cast<std::size_t>(header.rank)], at);
  }

  absl::Status received(Link& link, const FrameHeader& header, Bytes message) override {
    const int index = link.rank() - first_rank_;
    if (header.kind == FrameKind::kAbort) {
      return read_abort(link, message, static_cast<std::size_t>(first_rank_) + parts_.size());
    }
    if (header.kind == FrameKind::kCopy && index == 0 && !info_.has_value()) {
      SnapshotInfo info;
      PL_RETURN_IF_ERROR(decode(message, info));
      info_ = std::move(info);
      return absl::OkStatus();
    }
    if (header.kind == FrameKind::kTables && part(index).marks->empty()) {
      PL_RETURN_IF_ERROR(decode(message, *part(index).marks));
      return part(index).marks->size() == tables_ ? absl::OkStatus() : unexpected(header);
    }
    PL_RETURN_IF_ERROR(check(index, header));
    const std::size_t share = map_.share(index);
    if (shared_) {
      PL_ASSIGN_OR_RETURN(const float* const slab, find_share(*part(index).arena, header.begin, share));
      copy_share(map_, index, slab, 0, share, vectors_[static_cast<std::size_t>(header.rank)]);
    } else if (header.length != share * sizeof(float)) {
      return unexpected(header);
    }
    part(index).version = header.number;
    ++part(index).vectors;
    return absl::OkStatus();
  }

  // INVALID_ARGUMENT where the parts are not of one version.
  absl::Status check_versions() const {
    for (const Part& each : parts_) {
      if (each.version == info_->version) continue;
      return absl::InvalidArgumentError(
          str_cat("a part of a snapshot of version ", info_->version, " is of version ", each.version));
    }
    return absl::OkStatus();
  }

 private:
  struct Part {
    const transport::Mapping* arena = nullptr;
    TablesMessage* marks = nullptr;
    std::size_t vectors = 0;  // whole
    Version version = -1;
  };
  bool whole(const Part& each) const {
    return each.vectors == vectors_.size() && each.marks->size() == tables_;
  }
  Part& part(int index) { return parts_[static_cast<std::size_t>(index)]; }
  // The vectors of a part come in order.
  absl::Status check(int index, const FrameHeader& header) {
    const bool fits = header.kind == FrameKind::kCopied && part(index).vectors < vectors_.size() &&
                      header.rank == static_cast<std::int32_t>(part(index).vectors) &&
                      (part(index).vectors == 0 || header.number == part(index).version);
    return fits ? absl::OkStatus() : unexpected(header);
  }

  const ShardMap& map_;
  const std::vector<std::span<float>> vectors_;
  const std::size_t tables_;
  const int first_rank_;
  const bool shared_;
  std::vector<Part> parts_;
  std::optional<SnapshotInfo> info_;
};

}  // namespace

std::span<std::byte> bytes_of_share(const ShardMap& map, int index, std::span<float> vector,
                                    std::uint64_t at) {
  const std::size_t element = at / sizeof(float);
  const std::span<const Slice> slices = map.slices(index);
  const auto slice = std::partition_point(
      slices.begin(), slices.end(), [&](const Slice& each) { return each.slab + each.count <= element; });
  PL_CHECK(slice != slices.end(), "the byte lies in the share");
  return std::as_writable_bytes(vector.subspan(slice->begin, slice->count))
      .subspan(at - slice->slab * sizeof(float));
}

void copy_share(const ShardMap& map, int index, const float* slab, std::size_t from, std::size_t to,
                std::span<float> vector) {
  for (const Slice& slice : map.slices(index)) {
    const std::size_t begin = std::max(from, slice.slab), end = std::min(to, slice.slab + slice.count);
    if (begin >= end) continue;
    std::memcpy(vector.data() + slice.begin + (begin - slice.slab), slab + begin,
                (end - begin) * sizeof(float));
  }
}

absl::StatusOr<const float*> find_share(const transport::Mapping& arena, std::uint64_t offset,
                                        std::size_t share) {
  const std::size_t size = arena.memory().size();
  if (offset > size || offset % sizeof(float) != 0 || share > (size - offset) / sizeof(float)) {
    return absl::InvalidArgumentError(
        str_cat("says that ", share, " floats lie at ", offset, " of its arena of ", size, " bytes"));
  }
  return reinterpret_cast<const float*>(arena.memory().data() + offset);
}

absl::Status ClientImpl::begin_snapshot() {
  if (close_.is_closed()) return close_.reason();
  PL_CHECK(rank_ == 0, "worker 0 takes snapshots");
  if (snapshot_begun_.exchange(true)) {
    return absl::FailedPreconditionError("a snapshot is under way: take it before the next");
  }
  send(server(0).link, FrameKind::kSnapshot, 0);
  return flush_all();
}

absl::StatusOr<SnapshotInfo> ClientImpl::take_snapshot(std::span<float> weights,
                                                       std::span<const std::span<float>> optimizer,
                                                       Deadline deadline,
                                                       const std::function<void()>& moved) {
  if (close_.is_closed()) return close_.reason();
  PL_CHECK(snapshot_begun_ && snapshot_version_ < 0, "a snapshot is begun before it is taken, once");
  std::vector<std::span<float>> vectors = {weights};
  vectors.insert(vectors.end(), optimizer.begin(), optimizer.end());
  for (const std::span<float> vector : vectors) {
    PL_CHECK(vector.size() == map_.elements(), "vectors of a snapshot are as long as the model");
  }
  Collector collector(map_, std::move(vectors), options_.tables.size(), options_.workers, shared_);
  for (int s = 0; s < options_.servers; ++s) collector.set_server(s, &server(s).arena, &server(s).marks);

  ProgressDeadline progress(clock_, deadline);
  std::vector<pollfd> polled;
  const auto poll_all = [&](short events) -> absl::Status {
    polled.clear();
    for (const Server& each : servers_) polled.push_back({each.copies.fd(), events, 0});
    polled.push_back({close_.fd(), POLLIN, 0});
    if (progress.expired()) {
      return fail(
          server(collector.missing())
              .copies.blame(absl::DeadlineExceededError(str_cat(
                  "has sent nothing of its part of a snapshot for ", format_duration(progress.idle())))));
    }
    ::poll(polled.data(), polled.size(), transport::poll_milliseconds(progress.left(), kLookAroundMs));
    return close_.reason();
  };
  while (!collector.done()) {
    PL_RETURN_IF_ERROR(poll_all(POLLIN));
    for (std::size_t s = 0; s < servers_.size(); ++s) {
      if (polled[s].revents == 0) continue;
      const absl::Status received = servers_[s].copies.receive(collector, kReadBudget);
      if (!received.ok()) return fail(received);
      progress.moved();
      if (moved != nullptr) moved();
    }
  }
  if (const absl::Status same = collector.check_versions(); !same.ok()) return fail(same);
  snapshot_version_ = collector.info().version;
  if (options_.tables.empty()) PL_RETURN_IF_ERROR(send_taken());
  return collector.info();
}

absl::Status ClientImpl::send_taken() {
  for (Server& each : servers_) {
    each.copies.send({.kind = FrameKind::kTaken, .rank = rank_, .number = snapshot_version_});
    if (const absl::Status sent = each.copies.flush(); !sent.ok()) return fail(sent);
  }
  snapshot_version_ = -1;
  snapshot_begun_ = false;
  return absl::OkStatus();
}

}  // namespace paceline::pserver

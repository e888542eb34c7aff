// The rows of a snapshot: table by table, from all servers beside each other. A server sends a batch when it
// is asked for one, and kWindow are asked for at a time; an empty batch says that the table has no more.

#include <poll.h>

#include <algorithm>

#include "base/check.h"
#include "base/status.h"
#include "runtime/pserver/abort.h"
#include "runtime/pserver/client_impl.h"
#include "runtime/transport/socket.h"

namespace paceline::pserver {

namespace {

constexpr int kWindow = 2;
constexpr std::size_t kReadBudget = std::size_t{4} << 20;
constexpr int kLookAroundMs = 1000;

}  // namespace

class RowTaker final : public FrameReceiver {
 public:
  RowTaker(std::span<const sparse::TableSpec> tables, int servers, int workers, Version version,
           sparse::RowSink& sink)
      : tables_(tables),
        members_(static_cast<std::size_t>(workers + servers)),
        workers_(workers),
        version_(version),
        sink_(sink),
        parts_(static_cast<std::size_t>(servers)) {}

  void begin(std::size_t table, int server, const TableMark& mark) {
    if (failed_.ok()) failed_ = sink_.begin(static_cast<int>(table), server, mark.rows, mark.clock);
  }
  // The sink's error: what is under way is still received, and nothing more asked for.
  const absl::Status& failed() const { return failed_; }

  void start(std::size_t table) {
    table_ = table;
    for (Part& each : parts_) each = Part();
  }
  // Whether to ask that server for another batch now.
  bool wants(int server) const {
    const Part& of = part(server);
    return failed_.ok() && !of.over && of.under_way < kWindow;
  }
  void asked(int server) { ++part(server).under_way; }
  // Nothing more will come from it.
  bool done(int server) const { return part(server).under_way == 0 && (part(server).over || !failed_.ok()); }
  std::uint64_t rows(int server) const { return part(server).rows; }

  absl::StatusOr<std::span<std::byte>> place(Link&, const FrameHeader& header, std::uint64_t) override {
    return unexpected(header);
  }
  absl::Status received(Link& link, const FrameHeader& header, Bytes message) override {
    if (header.kind == FrameKind::kAbort) return read_abort(link, message, members_);
    const int server = link.rank() - workers_;
    Part& of = part(server);
    if (header.kind != FrameKind::kSavedRows || header.number != version_ || of.under_way == 0 ||
        header.rank != static_cast<std::int32_t>(table_)) {
      return unexpected(header);
    }
    PL_RETURN_IF_ERROR(decode(message, row_floats(tables_[table_]), batch_));
    --of.under_way;
    of.over = of.over || batch_.size() == 0;
    of.rows += batch_.size();
    if (batch_.size() > 0 && failed_.ok()) failed_ = sink_.add(static_cast<int>(table_), server, batch_);
    return absl::OkStatus();
  }

 private:
  struct Part {
    int under_way = 0;
    bool over = false;
    std::uint64_t rows = 0;
  };
  static absl::Status unexpected(const FrameHeader& header) {
    return absl::InvalidArgumentError(
        str_cat("sent a ", kind_name(header.kind), " frame that does not fit the snapshot"));
  }
  Part& part(int server) { return parts_[static_cast<std::size_t>(server)]; }
  const Part& part(int server) const { return parts_[static_cast<std::size_t>(server)]; }

  const std::span<const sparse::TableSpec> tables_;
  const std::size_t members_;
  const int workers_;
  const Version version_;
  sparse::RowSink& sink_;
  absl::Status failed_;
  std::size_t table_ = 0;
  std::vector<Part> parts_;
  sparse::SavedRows batch_;
};

absl::Status ClientImpl::take_rows(sparse::RowSink& sink, Deadline deadline) {
  if (close_.is_closed()) return close_.reason();
  if (options_.tables.empty()) return absl::OkStatus();
  PL_CHECK(snapshot_version_ >= 0, "rows are taken after the snapshot that they belong to");
  RowTaker taker(options_.tables, options_.servers, options_.workers, snapshot_version_, sink);
  for (std::size_t t = 0; t < options_.tables.size(); ++t) {
    for (int s = 0; s < options_.servers; ++s) taker.begin(t, s, server(s).marks[t]);
  }
  for (std::size_t t = 0; t < options_.tables.size() && taker.failed().ok(); ++t) {
    taker.start(t);
    PL_RETURN_IF_ERROR(take_table(taker, t, deadline));
  }
  PL_RETURN_IF_ERROR(say_taken());
  return taker.failed();
}

absl::Status ClientImpl::take_table(RowTaker& taker, std::size_t table, Deadline deadline) {
  const TimePoint from = clock_.now();
  std::vector<pollfd> polled;
  for (;;) {
    int missing = -1;
    polled.clear();
    for (int s = 0; s < options_.servers; ++s) {
      Link& link = server(s).copies;
      for (; taker.wants(s); taker.asked(s)) {
        link.send({.kind = FrameKind::kTakeRows,
                   .rank = static_cast<std::int32_t>(table),
                   .number = snapshot_version_});
      }
      if (const absl::Status sent = link.flush(); !sent.ok()) return fail(sent);
      polled.push_back({link.fd(), static_cast<short>(link.drained() ? POLLIN : POLLIN | POLLOUT), 0});
      if (missing < 0 && !taker.done(s)) missing = s;
    }
    if (missing < 0) break;
    polled.push_back({close_.fd(), POLLIN, 0});
    const Duration left = deadline.remaining(clock_.now());
    if (left == Duration::zero()) {
      return fail(server(missing).copies.blame(absl::DeadlineExceededError(
          str_cat("has not sent its rows of a snapshot after ", format_duration(clock_.now() - from)))));
    }
    ::poll(polled.data(), polled.size(), transport::poll_milliseconds(left, kLookAroundMs));
    if (close_.is_closed()) return close_.reason();
    for (int s = 0; s < options_.servers; ++s) {
      if ((polled[static_cast<std::size_t>(s)].revents & ~POLLOUT) == 0) continue;
      const absl::Status received = server(s).copies.receive(taker, kReadBudget);
      if (!received.ok()) return fail(received);
    }
  }
  for (int s = 0; s < options_.servers; ++s) {
    const std::uint64_t came = taker.rows(s), all = server(s).marks[table].rows;
    if (!taker.failed().ok() || came == all) continue;
    return fail(server(s).copies.blame(absl::InvalidArgumentError(
        str_cat("sent ", came, " of ", all, " rows of a snapshot of table ", options_.tables[table].name))));
  }
  return absl::OkStatus();
}

}  // namespace paceline::pserver

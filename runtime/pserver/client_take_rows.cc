// The rows of a snapshot, from all servers beside each other. A server sends a batch when it is asked for
// one, kWindow are asked for at a time, and the tables take turns: what a server keeps of rows that updates
// change is of all tables, and holds the log up where it is too much, so that none may wait for another. An
// empty batch says that its table has no more.

#include <poll.h>

#include <algorithm>

#include "base/check.h"
#include "base/status.h"
#include "runtime/pserver/abort.h"
#include "runtime/pserver/client_impl.h"
#include "runtime/pserver/progress_deadline.h"
#include "runtime/transport/socket.h"

namespace paceline::pserver {

namespace {

constexpr int kWindow = 2;

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
        servers_(static_cast<std::size_t>(servers)) {
    for (OfServer& each : servers_) each.parts.resize(tables.size());
  }

  void begin(std::size_t table, int server, const TableMark& mark) {
    if (failed_.ok()) failed_ = sink_.begin(static_cast<int>(table), server, mark.rows, mark.clock);
  }
  // The sink's error: what is under way is still received, and nothing more asked for.
  const absl::Status& failed() const { return failed_; }
  void fail(absl::Status why) { failed_ = std::move(why); }

  // The table of which that server is to be asked for a batch now; -1: none.
  int next(int server) {
    OfServer& of = at(server);
    if (!failed_.ok() || of.under_way == kWindow) return -1;
    for (std::size_t k = 0; k < tables_.size(); ++k) {
      const std::size_t table = std::exchange(of.turn, (of.turn + 1) % tables_.size());
      if (of.parts[table].over) continue;
      ++of.under_way;
      ++of.parts[table].under_way;
      return static_cast<int>(table);
    }
    return -1;
  }
  // Nothing more will come from it.
  bool done(int server) const {
    const OfServer& of = servers_[static_cast<std::size_t>(server)];
    const auto over = [](const Part& part) { return part.over; };
    return of.under_way == 0 && (!failed_.ok() || std::all_of(of.parts.begin(), of.parts.end(), over));
  }
  std::uint64_t rows(std::size_t table, int server) { return at(server).parts[table].rows; }

  absl::StatusOr<std::span<std::byte>> place(Link&, const FrameHeader& header, std::uint64_t) override {
    return unexpected(header);
  }
  absl::Status received(Link& link, const FrameHeader& header, Bytes message) override {
    if (header.kind == FrameKind::kAbort) return read_abort(link, message, members_);
    const int server = link.rank() - workers_;
    const auto table = static_cast<std::size_t>(header.rank);
    if (header.kind != FrameKind::kSavedRows || header.number != version_ || header.rank < 0 ||
        table >= tables_.size() || at(server).parts[table].under_way == 0) {
      return unexpected(header);
    }
    PL_RETURN_IF_ERROR(decode(message, sparse::row_floats(tables_[table]), batch_));
    Part& part = at(server).parts[table];
    --part.under_way;
    --at(server).under_way;
    part.over = part.over || batch_.size() == 0;
    part.rows += batch_.size();
    if (batch_.size() > 0 && failed_.ok()) failed_ = sink_.add(header.rank, server, batch_);
    return absl::OkStatus();
  }

 private:
  struct Part {  // of a table
    int under_way = 0;
    bool over = false;
    std::uint64_t rows = 0;
  };
  struct OfServer {
    std::vector<Part> parts;
    int under_way = 0;
    std::size_t turn = 0;  // the table that comes next
  };
  OfServer& at(int server) { return servers_[static_cast<std::size_t>(server)]; }

  const std::span<const sparse::TableSpec> tables_;
  const std::size_t members_;
  const int workers_;
  const Version version_;
  sparse::RowSink& sink_;
  absl::Status failed_;
  std::vector<OfServer> servers_;
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
  PL_RETURN_IF_ERROR(take_all_rows(taker, deadline));
  PL_RETURN_IF_ERROR(send_taken());
  return taker.failed();
}

// Asks for what is to be asked for. The first server that owes something, or -1.
absl::StatusOr<int> ClientImpl::ask_for_saved_rows(RowTaker& taker, std::vector<pollfd>& polled) {
  int missing = -1;
  polled.clear();
  for (int s = 0; s < options_.servers; ++s) {
    Link& link = server(s).copies;
    for (int table = taker.next(s); table >= 0; table = taker.next(s)) {
      link.send({.kind = FrameKind::kTakeRows, .rank = table, .number = snapshot_version_});
    }
    if (const absl::Status sent = link.flush(); !sent.ok()) return fail(sent);
    polled.push_back({link.fd(), static_cast<short>(link.drained() ? POLLIN : POLLIN | POLLOUT), 0});
    if (missing < 0 && !taker.done(s)) missing = s;
  }
  polled.push_back({close_.fd(), POLLIN, 0});
  return missing;
}

// Where a server sends nothing for too long, that is an error of the taking, like the sink's: what is under
// way is waited for once more, so that the links can go on with the next snapshot.
absl::Status ClientImpl::take_all_rows(RowTaker& taker, Deadline deadline) {
  ProgressDeadline progress(clock_, deadline);
  bool was_late = false;
  std::vector<pollfd> polled;
  for (;;) {
    PL_ASSIGN_OR_RETURN(const int missing, ask_for_saved_rows(taker, polled));
    if (missing < 0) break;
    if (progress.expired()) {
      const absl::Status late = server(missing).copies.blame(absl::DeadlineExceededError(
          str_cat("has sent nothing of a snapshot's rows for ", format_duration(progress.idle()))));
      if (was_late) return late;
      was_late = true;
      taker.fail(late);
      progress.moved();
      continue;
    }
    ::poll(polled.data(), polled.size(), transport::poll_milliseconds(progress.left(), kLookAroundMs));
    if (close_.is_closed()) return close_.reason();
    for (int s = 0; s < options_.servers; ++s) {
      if ((polled[static_cast<std::size_t>(s)].revents & ~POLLOUT) == 0) continue;
      const absl::Status received = server(s).copies.receive(taker, kReadBudget);
      if (!received.ok()) return fail(received);
      progress.moved();  // what the sink took of the time is not the server's, either
    }
  }
  for (std::size_t t = 0; t < options_.tables.size() && taker.failed().ok(); ++t) {
    for (int s = 0; s < options_.servers; ++s) {
      const std::uint64_t came = taker.rows(t, s), all = server(s).marks[t].rows;
      if (came == all) continue;
      return fail(server(s).copies.blame(absl::InvalidArgumentError(
          str_cat("sent ", came, " of ", all, " rows of a snapshot of table ", options_.tables[t].name))));
    }
  }
  return absl::OkStatus();
}

}  // namespace paceline::pserver

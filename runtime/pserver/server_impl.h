#pragma once

// The inside of a Server. One thread runs everything but close(), closed(), stats() and snapshot_bytes(): it
// polls all links, hands frames to on_*(), and carries out the log. server.cc has the loop, server_frames.cc
// what peers say, server_log.cc what is done to the weights, server_rows.cc what is done to sparse tables.

#include <poll.h>

#include <atomic>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/guarded.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/pserver/close_signal.h"
#include "runtime/pserver/grow_buffer.h"
#include "runtime/pserver/link.h"
#include "runtime/pserver/messages.h"
#include "runtime/pserver/progress_deadline.h"
#include "runtime/pserver/read_counts.h"
#include "runtime/pserver/row_inbox.h"
#include "runtime/pserver/row_messages.h"
#include "runtime/pserver/sequencer.h"
#include "runtime/pserver/server.h"
#include "runtime/pserver/shard_map.h"
#include "runtime/pserver/slab.h"
#include "runtime/pserver/sparse/sparse_table.h"
#include "runtime/pserver/updater.h"

namespace paceline::pserver {

class ServerImpl final : public Server, private FrameReceiver {
 public:
  struct Wiring {
    collective::Group group;
    std::vector<collective::PeerLink> links;
    bool shared = false;
  };
  ServerImpl(Wiring wiring, const ServerOptions& options, transport::Arena& arena, const Clock& clock,
             UniqueFd close_descriptor);

  absl::Status run(Deadline start) override;
  v1::ServerStats stats() const override;
  std::uint64_t snapshot_bytes() const override { return snapshot_bytes_; }
  void close(absl::Status reason) override { (void)close_.close(std::move(reason)); }
  absl::Status closed() const override { return close_.reason(); }

 private:
  struct Worker {
    Link link, copies;  // its requests; snapshots
    transport::Mapping arena;
    bool joined = false, left = false, lost = false;
    std::uint64_t elements = 0;        // of its model
    const float* gradient = nullptr;   // shared memory: the whole, where the worker has it
    const ReadCount* reads = nullptr;  // shared memory: weights that it has read from here
    std::uint64_t lent = 0;            // ... that were lent to it
    Version ahead = -1;                // ... the last of them before they were made
    std::span<float> slot;             // TCP: what arrived of its gradient
    std::uint64_t arrived = 0;         // elements in the slot
    Unit unit = -1;                    // of what arrives or lies here
    bool held = false;                 // a whole gradient lies here, and counts for nothing yet
    bool kept = false;                 // ... and so does what was put aside before it
    std::optional<RowInbox> rows;      // what it pulls and pushes of sparse tables
    GrowBuffer<float> answer;          // TCP: the rows that it pulled
    std::span<float> shared_answer;    // shared memory: the same, in the arena
    bool is_there() const { return !left && !lost; }
  };

  // ---- the loop (server.cc) ----
  absl::Status loop(Deadline start);
  absl::Status poll_once(ProgressDeadline& start);
  absl::Status answer_ask(int rank);
  absl::Status serve(Link& link, short events);
  void see_what_copies_moved();
  absl::Status copies_ended(int worker, const absl::Status& why);
  void lose(int worker, const absl::Status& why);
  bool all_gone() const;
  absl::Status ending() const;
  // An error, once what the other servers still say was heard: one that ends first says why.
  absl::Status explained(absl::Status error);
  void send_goodbye(const absl::Status& why);
  bool sequences() const { return index_ == 0; }
  Worker& worker(int rank) { return workers_[static_cast<std::size_t>(rank)]; }
  bool is_worker(int rank) const { return rank < options_.shape.workers; }

  // ---- frames (server_frames.cc) ----
  absl::StatusOr<std::span<std::byte>> place(Link& link, const FrameHeader& header,
                                             std::uint64_t at) override;
  absl::Status received(Link& link, const FrameHeader& header, Bytes message) override;
  absl::Status from_worker(int rank, const FrameHeader& header, Bytes message);
  absl::Status from_server(int index, const FrameHeader& header, Bytes message);
  absl::Status on_join(int rank, Bytes message);
  absl::Status on_begin(int rank, Bytes message);
  absl::Status on_state(const FrameHeader& header);
  absl::Status on_commit(int rank, const FrameHeader& header, Bytes message);
  absl::Status check_join(int rank);
  absl::Status make_room();
  bool may_read_ahead(std::size_t share) const;
  SlabNeed dense_need();
  absl::Status ready_when_whole();
  std::span<float> vector_of_state(std::size_t k);
  void send(Link& link, FrameKind kind, std::int64_t number, Bytes message = {}, std::int32_t rank = -1);

  // ---- the log (server_log.cc) ----
  // Closes with an error that is no peer's, and is OK: the loop ends.
  absl::Status own_error(absl::Status status);
  // Sends what the sequencer decided to the other servers, and carries it out here.
  absl::Status follow_sequencer();
  void append(const LogStep& step);
  absl::Status carry_out_pending();
  absl::Status update(const LogEntry& entry);
  absl::Status turn(const LogEntry& entry, const TurnResult& result);
  absl::Status copy(SnapshotInfo snapshot);
  absl::Status norm_known(int server, Version version, double squares);
  absl::Status factor_known(Version version, double factor);
  absl::Status find_sources(const LogEntry& entry);
  absl::Status finish_update(const LogEntry& entry);
  void announce(const LogEntry& entry);
  void update_is_made(const LogEntry& entry);
  absl::Status keep_aside(int rank);
  void see_who_has_read();

  // ---- sparse tables (server_rows.cc) ----
  absl::Status from_worker_rows(int rank, const FrameHeader& header, Bytes message);
  absl::Status answer_pull(int rank);
  absl::StatusOr<std::span<float>> memory_of_answer(Worker& to, std::size_t floats);
  void find_rows(const LogEntry& entry, std::uint32_t table);
  double fraction_of(const LogEntry& entry) const;
  absl::Status update_rows(const LogEntry& entry);
  absl::StatusOr<double> gather_rows(const LogEntry& entry);
  void step_rows(const LogEntry& entry, float factor);
  absl::Status on_saved_rows(const FrameHeader& header, Bytes message);
  absl::Status on_rows_restored(const FrameHeader& header);
  void mark_tables();
  absl::Status on_take_rows(int rank, const FrameHeader& header);
  void drop_row_snapshots();
  bool too_much_is_kept() const;
  bool held_up_by_snapshot();
  void publish_rows();

  const ServerOptions options_;
  const Generation generation_;
  const int index_;  // among the servers
  const bool shared_;
  const Clock& clock_;
  transport::Arena& arena_;
  CloseSignal close_;
  std::vector<Worker> workers_;
  std::vector<std::string> names_;
  std::vector<Link> servers_;  // the sequencer: all others, by index; others: the sequencer
  std::vector<bool> server_left_;
  std::vector<pollfd> polled_;
  std::vector<Link*> polled_links_;
  int spin_calls_ = 0;
  int last_lost_ = 0;
  absl::Status told_;  // why another server ended, in its words
  Buffer buffer_;

  // What worker 0 said.
  BeginMessage begin_;
  bool begun_ = false, ready_ = false;
  std::uint64_t expected_state_ = 0;  // floats that have not come
  std::optional<ShardMap> map_;
  std::optional<Slab> slab_;
  MadeCount* made_ = nullptr;  // in the arena, where workers read what is being made
  std::optional<optimizer::Optimizer> optimizer_;
  std::optional<Updater> updater_;
  std::deque<sparse::SparseTable> tables_;
  bool rows_restored_ = false;  // or there are no tables

  std::optional<Sequencer> sequencer_;
  std::vector<LogStep> pending_;  // entries to be carried out, from next_pending_ on
  std::size_t next_pending_ = 0, pending_size_ = 0;
  Version version_ = 0;
  bool waits_for_factor_ = false;  // the update of pending_[next_pending_] has its sum
  std::optional<double> factor_;
  std::vector<std::optional<double>> norms_;  // the sequencer: parts of that update's, by server
  std::vector<GradientSource> sources_;
  LogStep decoded_;
  int copies_out_ = 0;  // that worker 0 has not said it has taken
  Version snapshot_version_ = -1;
  sparse::SavedRows saved_;  // a batch, on its way in or out
  std::vector<sparse::GradientRows> row_parts_;
  // Whether worker 0 holds the log up, when it moved last then, and when it held it up last.
  WaitingMessage::Hold hold_ = WaitingMessage::Hold::kLoading;
  TimePoint moved_at_;
  std::optional<TimePoint> released_at_;
  // When some of a gradient, of rows, or of weights came from a worker or went to one last.
  std::optional<TimePoint> transfer_moved_at_;

  // Read by stats().
  std::atomic<std::int64_t> updates_{0}, gradients_{0}, busy_ns_{0}, queue_{0};
  std::atomic<std::uint64_t> bytes_received_{0}, bytes_sent_{0}, snapshot_bytes_{0};
  mutable std::atomic<bool> stats_asked_{false};  // row_stats_ is filled when the thread comes to it
  mutable Guarded<v1::ServerStats> row_stats_;
};

}  // namespace paceline::pserver

#pragma once

// The inside of a Client: client.cc has the turns, client_waits.cc how they are waited for, client_rows.cc
// the rows of sparse tables, client_snapshot.cc and client_take_rows.cc the snapshots, which have connections
// of their own and so run beside the turns.

#include <poll.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/guarded.h"
#include "runtime/pserver/client.h"
#include "runtime/pserver/close_signal.h"
#include "runtime/pserver/link.h"
#include "runtime/pserver/messages.h"
#include "runtime/pserver/progress_deadline.h"
#include "runtime/pserver/read_counts.h"
#include "runtime/pserver/row_cut.h"
#include "runtime/pserver/row_messages.h"
#include "runtime/pserver/shard_map.h"

namespace paceline::pserver {

class ClientImpl final : public Client, private FrameReceiver {
 public:
  struct Wiring {
    collective::Group group;
    std::vector<collective::PeerLink> links;  // by server
    bool shared = false;
    const transport::Arena* arena = nullptr;  // this worker's: gradients lie there
    std::span<std::byte> reads;               // shared memory: this worker's counts of reads, in its arena
    std::uint64_t gradient = 0;               // where the gradient lies there
    std::uint64_t reads_at = 0;
    std::vector<std::uint64_t> decay;
  };
  ClientImpl(Wiring wiring, const ClientOptions& options, std::span<float> weights, std::span<float> gradient,
             const Clock& clock, UniqueFd close_descriptor, UniqueFd interrupt_descriptor);
  ~ClientImpl() override = default;

  // Says to all servers who this is.
  absl::Status join();

  absl::Status report_loading() override;
  absl::Status initialize(const InitialState& state, Deadline deadline) override;
  absl::StatusOr<TurnResult> wait_turn(Deadline deadline) override;
  absl::Status pull_rows(std::span<const sparse::RowsPull> pulls, Deadline deadline) override;
  absl::Status push(std::size_t begin, std::size_t end) override;
  absl::Status push_rows(std::span<const sparse::RowsPush> pushes) override;
  absl::Status commit(const Commit& commit) override;
  absl::Status wish(const Wishes& wishes) override;
  absl::Status begin_snapshot() override;
  absl::Status flush(Deadline deadline) override;
  absl::StatusOr<SnapshotInfo> take_snapshot(std::span<float> weights,
                                             std::span<const std::span<float>> optimizer, Deadline deadline,
                                             const std::function<void()>& moved) override;
  absl::Status take_rows(sparse::RowSink& sink, Deadline deadline) override;
  absl::Status leave() override;
  ClientTimes times() const override { return times_; }
  ClientCounters counters() const override {
    return {bytes_sent_, bytes_received_, floats_ahead_, frames_sent_, frames_received_, round_trips_};
  }
  v1::StalenessStats staleness() const override;
  void interrupt() override { (void)interrupt_.close(absl::CancelledError("no more turns are taken")); }
  bool interrupted() const override { return interrupt_.is_closed(); }
  void close(absl::Status reason) override;
  absl::Status closed() const override { return close_.reason(); }

 private:
  static constexpr std::size_t kHistogram = 32;
  static constexpr int kLookAroundMs = 1000;
  static constexpr std::size_t kReadBudget = std::size_t{4} << 20;  // of one link
  struct Staleness {
    std::int64_t applied = 0, dropped = 0, sum = 0, max = 0, wait_ns = 0;
    std::array<std::int64_t, kHistogram> histogram{};
  };
  struct Coming {
    Version version = 0;
    std::uint64_t begin = 0;  // in the server's arena
    const float* slab = nullptr;
    const MadeCount* made = nullptr;
    std::size_t read = 0;  // elements, in the order of the slab
  };
  struct Server {
    Link link, copies;
    transport::Mapping arena;
    std::uint64_t reads = 0;
    bool has_weights = false;  // of the turn that is waited for
    Version version = 0;
    std::optional<Coming> coming;             // weights that are being made
    bool owes_rows = false;                   // of the pull that is waited for
    std::size_t part = 0;                     // of its answer: what is coming, ...
    std::uint64_t begins = 0;                 // ... and at which byte that began
    TablesMessage marks;                      // of the snapshot that is being taken
    std::optional<WaitingMessage> waits_for;  // its answer to the last kAsk
    std::optional<ProgressDeadline> silence;  // while that is owed, in one wait for a turn
    std::uint64_t moved_before = 0;           // bytes both ways, when that wait began
    bool moves = false;                       // some did between then and the kAsk
    std::uint64_t moved() const { return link.bytes_received() + link.bytes_sent(); }
  };

  absl::StatusOr<std::span<std::byte>> place(Link& link, const FrameHeader& header,
                                             std::uint64_t at) override;
  absl::Status received(Link& link, const FrameHeader& header, Bytes message) override;
  absl::Status on_weights(int index, const FrameHeader& header);

  // ---- weights that are being made (client_ahead.cc) ----
  absl::Status on_coming(int index, const FrameHeader& header, Bytes message);
  // Copies what is made by now. False: nothing is coming, or nothing more was made for a while.
  bool read_ahead();

  // ---- rows (client_rows.cc) ----
  absl::Status send_initial_rows(sparse::RowSource* source, ProgressDeadline& progress);
  absl::Status send_batch(int table, const sparse::SavedRows& rows, ProgressDeadline& progress);
  void ask_for_rows();
  absl::Status wait_for_rows(Deadline deadline);
  void send_rows(int index, std::span<const sparse::RowsPush> pushes);
  absl::StatusOr<std::span<std::byte>> place_rows(int index, const FrameHeader& header, std::uint64_t at);
  absl::Status on_rows(int index, const FrameHeader& header);
  bool fits_pull(int index, const FrameHeader& header) const;

  // ---- snapshots ----
  absl::Status take_all_rows(class RowTaker& taker, Deadline deadline);
  absl::StatusOr<int> ask_for_saved_rows(class RowTaker& taker, std::vector<pollfd>& polled);
  absl::Status send_taken();

  // Ends the client with an error; returns what stays.
  absl::Status fail(const absl::Status& error) {
    close(error);
    return close_.reason();
  }
  // The same, of a turn's links, once what they still say was heard.
  absl::Status lost(absl::Status error);
  absl::Status flush_all();
  // Until all is on its way. DEADLINE_EXCEEDED names who does not take `what`.
  absl::Status drain(const char* what, ProgressDeadline& progress);
  std::uint64_t bytes_written() const;  // to all servers, so far
  // One round of polling: writes, reads, hands on. DEADLINE_EXCEEDED without a name.
  absl::Status pump(Deadline deadline);
  // Polls the connections of snapshots for their end alone, and tells whose was cut.
  std::size_t poll_copies();
  absl::Status find_cut(std::size_t first);
  absl::Status wait_for_turn(Deadline deadline);
  absl::Status ask_what_is_waited_for(Duration patience);
  absl::StatusOr<Duration> wait_longer(Duration waited, Duration patience) const;
  absl::Status blame(int rank, Duration waited, std::string_view why) const;
  absl::Status late(Duration waited) const;
  void count_turn(const TurnResult& turn, Duration waited);
  void count_frames();
  bool turn_is_here() const;
  void send_state(std::size_t vector, std::span<const float> values);
  Server& server(int index) { return servers_[static_cast<std::size_t>(index)]; }
  int index_of(const Link& link) const { return link.rank() - options_.workers; }
  void send(Link& link, FrameKind kind, std::int64_t number, Bytes message = {});

  const ClientOptions options_;
  const int rank_;
  const bool shared_;
  const std::span<float> weights_, gradient_;
  const Clock& clock_;
  const ShardMap map_;
  CloseSignal close_, interrupt_;
  const transport::Arena& arena_;     // as in Wiring
  const std::span<std::byte> reads_;  // likewise
  const std::uint64_t reads_at_, gradient_at_;
  const std::vector<std::uint64_t> decay_;
  std::vector<std::string> names_;
  std::vector<Server> servers_;
  std::vector<pollfd> polled_;
  int spin_calls_ = 0;
  int idle_looks_ = 0;  // at what is coming, since something of it was made
  Buffer buffer_;

  std::optional<TurnResult> turn_;  // came, and was not yet given to the caller
  absl::Status told_;               // why a server ended, in its words
  Unit unit_ = -1;                  // that the caller computes
  std::size_t pushed_ = 0;          // elements of it
  bool bytes_came_ = false;         // of the weights or rows that are waited for
  bool may_pull_ = false;           // a turn is here, and not committed
  bool rows_pushed_now_ = false;    // in this turn
  ClientTimes times_;

  RowCut pull_, push_;  // what is pulled now; what was pushed last
  std::vector<RowsCall> calls_;
  RowsMessage rows_message_;
  std::span<const sparse::RowsPull> pulls_;  // during pull_rows() alone
  std::int64_t pull_number_ = 0;
  std::vector<sparse::SavedRows> batches_;  // by server, during initialize() alone
  std::size_t queued_bytes_ = 0;

  std::atomic<bool> snapshot_begun_{false};  // and not taken
  Version snapshot_version_ = -1;            // taken, but for its rows
  std::atomic<std::uint64_t> bytes_sent_{0}, bytes_received_{0}, floats_ahead_{0};
  std::atomic<std::uint64_t> frames_sent_{0}, frames_received_{0}, round_trips_{0};
  mutable Guarded<Staleness> staleness_;
};

// Payload byte `at` of server `index`'s part of a vector, and the bytes that follow it in the same slice.
std::span<std::byte> bytes_of_share(const ShardMap& map, int index, std::span<float> vector,
                                    std::uint64_t at);
// Copies elements [from, to) of a server's part, as its slab has it, to where they belong. REQUIRES: the slab
// is as long as the share.
void copy_share(const ShardMap& map, int index, const float* slab, std::size_t from, std::size_t to,
                std::span<float> vector);
// What a server's frame says lies in its arena. INVALID_ARGUMENT.
absl::StatusOr<const float*> find_share(const transport::Mapping& arena, std::uint64_t offset,
                                        std::size_t share);

}  // namespace paceline::pserver

#pragma once

// Runs a plan over byte streams: one thread, two cursors, reduce on arrival.
//
// A step's data travels in frames of at most kFrameBytes; frame f between two ranks goes over channel f mod
// channels, so that several sockets carry one step and the order is still fixed. What replaces a range is
// read straight into it; what is combined goes through one frame's staging memory that stays in the
// processor's cache. Not thread-safe; interrupt() from any thread ends waits so that `stopped` is asked
// again.

#include <functional>
#include <span>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "runtime/collective/plan.h"
#include "runtime/transport/frame.h"
#include "runtime/transport/streams.h"

namespace paceline::collective {

inline constexpr std::size_t kFrameBytes = std::size_t{256} << 10;
static_assert(kFrameBytes <= transport::kMaxFrameBytes);

struct Traffic {
  std::uint64_t bytes_sent = 0;
  std::uint64_t header_bytes_sent = 0;
  Duration waited{};
};

// Why a run ended early: the status, and the rank it concerns (-1: none).
struct RunFailure {
  absl::Status status;
  int rank = -1;
};

class ScheduleRunner {
 public:
  ScheduleRunner(transport::Streams& streams, int rank, int world, Generation generation, int spin_turns,
                 const Clock& clock);

  // `stopped` is asked while waiting; where it is true, the run ends with CANCELLED. Statuses name no rank:
  // the failure does.
  RunFailure run(const Call& call, const Plan& plan, int divisor, Deadline deadline,
                 const std::function<bool()>& stopped);
  Traffic traffic() const { return traffic_; }

 private:
  struct Cursor {
    std::size_t step = 0;
    std::size_t done = 0;  // elements of the step's range
    bool in_frame = false;
    std::size_t frame_elements = 0;
    std::size_t moved = 0;  // bytes of this frame, its header included
    std::byte header[transport::kFrameHeaderBytes];
    std::vector<std::uint32_t> frames;  // by peer, in this operation
  };

  bool send_more();
  bool receive_more();
  bool begin_send_frame(const Step& step);
  bool begin_receive_frame(const Step& step);
  bool finish_receive_frame(const Step& step);
  bool check_header(const Step& step);
  void combine(const Step& step, Range range, std::byte* arrived);
  void fold(const Step& step);
  bool may_send(std::size_t end) const;
  bool may_write(std::size_t end) const;
  std::size_t next_elements(const Range& range, std::size_t done) const;
  void skip_idle_steps();
  bool fail(absl::Status status, int rank);
  transport::Interest reading() const;
  transport::Interest writing() const;
  int channel_of(const Cursor& cursor, int peer) const;

  transport::Streams& streams_;
  const int rank_, world_;
  const Generation generation_;
  const int spin_turns_;
  const Clock& clock_;
  Traffic traffic_;
  std::uint64_t operation_ = 0;

  // One run's.
  Call call_;
  const Plan* plan_ = nullptr;
  int divisor_ = 1;
  std::size_t element_ = 1;
  std::uint32_t call_checksum_ = 0;
  Cursor send_, receive_;
  RunFailure failure_;
  std::vector<std::byte> arrived_;                     // one frame, to be combined
  std::vector<std::vector<std::byte>> contributions_;  // by rank: what kStage keeps aside
  std::vector<std::size_t> staged_;                    // by rank: elements kept
  std::vector<const std::byte*> inputs_;
};

}  // namespace paceline::collective

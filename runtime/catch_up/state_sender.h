#pragma once

// A member's part in giving a newcomer the state while it trains: the source.
//
// The training thread calls step_applied() behind every step. It copies, and waits for nobody: of the
// gradient what the newcomer has already, and of the state so much as takes a hundredth of a step. A thread
// of its own finds the newcomer and writes. A newcomer that does not keep up is given up, so that what waits
// to be sent is bounded.

#include <cstddef>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "runtime/catch_up/frame.h"
#include "runtime/collective/fabric.h"
#include "runtime/transport/streams.h"

namespace paceline::catch_up {

// All of the same size.
struct StateView {
  std::span<const float> weights;
  std::vector<std::span<const float>> optimizer;
  std::span<const float> gradient;  // of the step, summed over all members
};

class StateSender {
 public:
  // `group`: the newcomer is rank 0, and the sources follow; its generation is the view's in which they
  // train. Fabric and clock outlive this.
  StateSender(collective::Fabric& fabric, const Clock& clock, collective::Group group);
  // Gives up what is not sent yet. A newcomer that it still looks for is looked for no longer, in this
  // generation.
  ~StateSender();
  StateSender(const StateSender&) = delete;
  StateSender& operator=(const StateSender&) = delete;

  // The state is as `update` has left it. `last`: the view ends here.
  void step_applied(const StateView& state, const Update& update, bool last);
  // The state is where this source can't give it from.
  void refuse();

  std::size_t waiting() const { return shared_.lock()->bytes; }  // bytes that are not sent yet
  // OK while it goes on, or when all is sent; else why it was given up.
  absl::Status status() const { return shared_.lock()->status; }

  // Bytes may wait to be sent: no more of the state is given beyond the first number, and the newcomer is
  // given up beyond the second, or four steps' gradients.
  static constexpr std::size_t kManyWaiting = std::size_t{8} << 20, kMostWaiting = std::size_t{64} << 20;

 private:
  using Chunk = std::unique_ptr<std::byte[]>;  // a header and kMostFloats floats
  struct Waiting {
    Chunk chunk;
    std::size_t bytes = 0;
  };
  struct Shared {
    bool connected = false;
    bool over = false;  // nothing more is taken
    std::deque<Waiting> waiting;
    std::size_t bytes = 0;  // that wait
    std::vector<Chunk> free;
    absl::Status status;
  };

  void run(const std::stop_token& stop);
  absl::Status connect();
  absl::Status send_all(const std::stop_token& stop);
  absl::Status send(const Waiting& next, const std::stop_token& stop);
  void end(absl::Status status);
  // A frame that waits then; `floats` are copied behind each other.
  void add(const Frame& frame, std::span<const std::span<const float>> floats);
  void add_gradient(const StateView& state, const Update& update);
  void add_state(const StateView& state, const Update& update);

  collective::Fabric& fabric_;
  const Clock& clock_;
  const collective::Group group_;

  // The training thread's.
  std::optional<Slice> slice_;          // known with the first step
  std::size_t given_ = 0;               // elements of it
  std::optional<TimePoint> called_at_;  // the last step_applied()'s end

  mutable Guarded<Shared> shared_;
  std::unique_ptr<transport::Streams> stream_;  // the thread's, once connected
  std::jthread thread_;                         // last: it uses all of the above
};

}  // namespace paceline::catch_up

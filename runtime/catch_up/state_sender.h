#pragma once

// A member's part in giving a newcomer the state while it trains: the source.
//
// The training thread lends the state and the gradient behind every step, and takes them back before it
// writes the next gradient. In between a thread of its own copies: of the gradient what the newcomer has
// already, and so much more of the state as finds room; then it sends. What of the gradient is left then the
// training thread copies itself, and a little of the state where there was no time for any. It waits for one
// copy at most: a newcomer that does not keep up is given up, so that what waits to be sent is bounded.

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

  // --- training thread ---
  // The state is as `update` has left it, and stays so until take_back().
  void lend(StateView state, const Update& update);
  // The call ends every use of what was lent, if anything was.
  void take_back();
  // The view ends with this step: it is lent and taken back, and nothing follows.
  void end(StateView state, const Update& update);
  // The state is where this source can't give it from.
  void refuse();

  // --- any thread ---
  std::size_t waiting() const { return shared_.lock()->bytes; }  // bytes that are not sent yet
  // OK while it goes on, or when all is sent; else why it was given up.
  absl::Status status() const { return shared_.lock()->status; }

  // Bytes may wait to be sent: no more of the state is given beyond the first number, and the newcomer is
  // given up beyond the second, or four steps' gradients.
  static constexpr std::size_t kManyWaiting = std::size_t{32} << 20, kMostWaiting = std::size_t{96} << 20;

 private:
  using Chunk = std::unique_ptr<std::byte[]>;  // a header and kMostFloats floats
  struct Waiting {
    Chunk chunk;
    std::size_t bytes = 0, sent = 0;
  };
  struct Lent {
    StateView state;
    Update update;
    std::size_t at = 0, end = 0;  // of the part: elements whose gradient is copied, and is to be
    bool gave = false;            // some of the state
  };
  // The next copy: elements [begin, begin + frame.count) of each.
  struct Copy {
    Frame frame;
    std::vector<std::span<const float>> from;
    Chunk to;
  };
  struct Shared {
    bool connected = false;
    bool over = false;  // nothing more is taken
    std::optional<Slice> slice;
    std::size_t given = 0;  // elements of it
    std::optional<Lent> lent;
    bool copying = false;  // from what is lent, without the lock
    std::deque<Waiting> waiting;
    std::size_t bytes = 0;  // that wait
    std::vector<Chunk> free;
    absl::Status status;
  };
  static bool has_gradient(const Shared& shared) { return shared.lent && shared.lent->at < shared.lent->end; }
  static bool has_copy(const Shared& shared);
  static Copy next_copy(Shared& shared);
  static void add(Shared& shared, Waiting waiting);

  void run(const std::stop_token& stop);
  absl::Status connect();
  absl::Status send_all(const std::stop_token& stop);
  absl::Status send_some();
  void give_up(absl::Status status);

  collective::Fabric& fabric_;
  const Clock& clock_;
  const collective::Group group_;
  mutable Guarded<Shared> shared_;
  std::shared_ptr<transport::Streams> stream_;  // the thread's, once connected
  Waiting sending_;                             // the thread's: under way
  std::jthread thread_;                         // last: it uses all of the above
};

}  // namespace paceline::catch_up

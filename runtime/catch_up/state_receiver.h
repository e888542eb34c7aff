#pragma once

// A newcomer's part in getting the state from the members of a view while they train.
//
// A thread of its own meets the sources, and writes what they send into the newcomer's own vectors. Nobody
// else may use these before finish() has returned or this is gone.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "runtime/catch_up/frame.h"
#include "runtime/collective/fabric.h"

namespace paceline::catch_up {

// The place where the state goes. All vectors are of one size.
struct LearnedState {
  std::span<float> weights;
  std::vector<std::span<float>> optimizer;
  // One step for elements [begin, begin + gradient.size()), which are as they were before it.
  std::function<void(const Update& update, std::size_t begin, std::span<const float> gradient)> apply;
};

// The state is as every member of the view has it after this step.
struct Learned {
  Step step = 0;
  std::int64_t optimizer_steps = 0;
};

class StateReceiver {
 public:
  // Hears in the receiver's thread when this newcomer holds all of the state and keeps up with the others
  // (OK), and when that can't be had any more.
  using OnNews = std::function<void(const absl::Status&)>;

  // `group`: this newcomer is rank 0, and the sources follow. Fabric and clock outlive this.
  StateReceiver(collective::Fabric& fabric, const Clock& clock, collective::Group group, LearnedState state,
                OnNews on_news);
  // Gives up.
  ~StateReceiver();
  StateReceiver(const StateReceiver&) = delete;
  StateReceiver& operator=(const StateReceiver&) = delete;

  // Waits until the view has ended and all of it is here. UNAVAILABLE (a source is gone, or the view ended
  // before all was here), FAILED_PRECONDITION (a source can't give its part), INVALID_ARGUMENT (a source sent
  // what it must not), DEADLINE_EXCEEDED, CANCELLED: the vectors have parts of several states.
  absl::StatusOr<Learned> finish(Deadline deadline);
  // From any thread: finish() ends with CANCELLED.
  void cancel();

  Generation generation() const { return group_.generation; }
  std::uint64_t bytes_received() const { return shared_.lock()->bytes; }

 private:
  struct Source {
    int rank = 0;
    transport::Wire socket;
    Slice slice;
    std::size_t have = 0;     // elements
    std::size_t covered = 0;  // of those, by gradients of the step under way
    Update at;                // what `have` elements are after
    bool ended = false;
    // The frame that comes: its header, then its floats.
    std::vector<std::byte> buffer;
    std::size_t filled = 0, wanted = kHeaderBytes;
    std::optional<Frame> frame;
  };
  struct Shared {
    bool met = false;
    bool over = false;
    absl::StatusOr<Learned> result;
    std::uint64_t bytes = 0;
  };

  absl::StatusOr<Learned> run(const std::stop_token& stop);
  absl::Status meet();
  absl::Status read(Source& source);
  absl::Status take(Source& source);
  absl::Status take_gradient(Source& source, const Frame& frame, std::span<const float> floats);
  absl::Status take_state(Source& source, const Frame& frame, std::span<const float> floats);
  absl::Status take_end(Source& source, const Frame& frame);
  bool has_all() const;
  absl::Status about(const Source& source, const absl::Status& status) const;
  std::size_t vectors() const { return 1 + state_.optimizer.size(); }

  collective::Fabric& fabric_;
  const Clock& clock_;
  const collective::Group group_;
  const LearnedState state_;
  const OnNews on_news_;

  std::vector<Source> sources_;  // the thread's
  mutable Guarded<Shared> shared_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace paceline::catch_up

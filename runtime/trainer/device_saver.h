#pragma once

// Checkpoints of a state that is trained on a device, for rank 0: copied to the host beside the next step,
// and written in a thread of its own while training goes on. The owner waits for no more than what the next
// step did not hide of the copy.
//
// One thread owns it. The replica's memory of the host is what is written: until a save is done, nobody else
// brings the state there (wait() first). Errors: the device's, and the store's.

#include <cstdint>
#include <memory>
#include <optional>
#include <thread>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/guarded.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/trainer/progress_file_store.h"
#include "runtime/trainer/replica.h"
#include "runtime/trainer/save_outcome.h"
#include "runtime/trainer/stop_request.h"

namespace paceline::trainer {

class DeviceSaver {
 public:
  // All outlive it.
  DeviceSaver(const v1::TrainingSpec& spec, const Clock& clock, Replica& replica, StopRequest& stop,
              ProgressFileStore& files);
  ~DeviceSaver();  // waits for the one under way
  DeviceSaver(const DeviceSaver&) = delete;
  DeviceSaver& operator=(const DeviceSaver&) = delete;

  bool busy() const { return state_ != State::kIdle; }
  // Begins one of the present state. REQUIRES: not busy; the state is on the device.
  void begin();
  // After each step: what came of the one under way, once it is done; wait(): now.
  std::optional<SaveOutcome> poll();
  std::optional<SaveOutcome> wait();
  // For how long the owner was held up since it last asked.
  Duration take_stall() { return std::exchange(stall_, Duration::zero()); }

 private:
  enum class State : std::uint8_t { kIdle, kCopying, kWriting };
  void write();
  std::optional<SaveOutcome> finish();
  void fail(const absl::Status& status);

  const Clock& clock_;
  Replica& replica_;
  StopRequest& stop_;
  checkpoint::CheckpointStore store_;  // the thread's, while it writes
  State state_ = State::kIdle;
  std::unique_ptr<StopRequest::Saving> saving_;
  Step step_ = 0;
  TimePoint began_{};
  Duration held_up_{}, stall_{};  // by this save; since take_stall()
  Guarded<std::optional<SaveOutcome>> done_;
  std::jthread thread_;
};

}  // namespace paceline::trainer

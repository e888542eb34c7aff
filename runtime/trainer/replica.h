#pragma once

// A member's copy of what is trained: weights, optimizer and the number of steps applied. It outlives views.
// With parameter servers the optimizer is theirs; rank 0 has memory for its state, to give it and to save it.
//
// Weights and optimizer state are this member's own memory; the gradient lies in the arena that it is given,
// with kControls floats behind it that travel in the same exchange. On a device that has memory of its own
// (optimizer/device_state.h) all of it may stay there while it is trained, and the host's is old until it is
// asked for: what says so below brings it. One thread at a time.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/ids.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/catch_up/frame.h"
#include "runtime/catch_up/state_receiver.h"
#include "runtime/catch_up/state_sender.h"
#include "runtime/checkpoint/checkpoint_store.h"
#include "runtime/collective/communicator.h"
#include "runtime/exchange/gradient_exchange.h"
#include "runtime/optimizer/device_state.h"
#include "runtime/optimizer/optimizer.h"
#include "runtime/tensor/program.h"
#include "runtime/trainer/controls.h"
#include "runtime/trainer/state_format.h"
#include "runtime/trainer/workload.h"
#include "runtime/transport/memory.h"

namespace paceline::trainer {

class Replica {
 public:
  // Initial weights from the spec's seed, as `program` makes them. INVALID_ARGUMENT (optimizer), or
  // RESOURCE_EXHAUSTED (no memory for the gradient). `spec` outlives it.
  static absl::StatusOr<std::unique_ptr<Replica>> create(const v1::TrainingSpec& spec,
                                                         const tensor::Program& program,
                                                         transport::Arena& arena);
  // With parameter servers, which keep the optimizer: before optimizer_state() is wanted; otherwise it is
  // there. INVALID_ARGUMENT.
  absl::Status make_optimizer();

  const tensor::ParameterLayout& layout() const { return layout_; }
  std::span<float> weights() { return weights_; }
  std::span<float> gradient() { return exchanged_.first(layout_.elements); }
  std::span<float> controls() { return exchanged_.subspan(layout_.elements); }
  std::span<float> exchanged() { return exchanged_; }  // gradient and controls
  std::vector<optimizer::StateVector> optimizer_state() {
    return optimizer_.has_value() ? optimizer_->state() : std::vector<optimizer::StateVector>();
  }
  Step step() const { return step_; }
  void set_step(Step step) { step_ = step; }  // of weights that came from servers

  // Moves the state to a device, where it is not there yet, made by `make` the first time; and back to the
  // host. The device's errors.
  absl::Status to_device(const MakeDeviceState& make);
  absl::Status leave_device();
  // Frees what it takes of the device, which is made anew when the state moves there again. REQUIRES: the
  // state is the host's. Who is bound to the state there is bound anew before it runs.
  void release_device();
  // Null while the state is the host's.
  optimizer::DeviceState* on_device() { return on_device_ ? device_.get() : nullptr; }
  // Of the device's memory, wherever the state is now.
  std::size_t device_bytes() const { return device_ == nullptr ? 0 : device_->bytes(); }
  // Binds a program to the weights, and the gradient, where they are now. The device's errors.
  absl::Status bind(tensor::Program& program, Purpose purpose);

  // One update with the summed gradient, times `scale`. INVALID_ARGUMENT: the gradient isn't finite, and
  // nothing changed; on a device that may be told by the next call, or the next that brings the state to the
  // host. REQUIRES: on a device the scale is 1.
  absl::Status update(double learning_rate, double scale = 1);
  absl::StatusOr<std::uint64_t> hash();  // of the weights, wherever they are

  // For a newcomer, while this one trains: the state, and the gradient that the last update() took. REQUIRES:
  // the state is the host's, and was updated.
  catch_up::StateView shared();
  const catch_up::Update& last_update() const { return last_update_; }
  // For this one, as a newcomer: where the state goes. Valid as long as this is, and the only use of it
  // meanwhile.
  catch_up::LearnedState learned();
  void set_learned(const catch_up::Learned& learned);
  // Not while a state is being copied here, nor where that ended half-way.
  bool is_whole() const { return whole_; }

  // Whether all members hold the same state. The communicator's errors, the device's as INTERNAL;
  // FAILED_PRECONDITION: the models have different numbers of parameters.
  absl::StatusOr<bool> agrees(collective::Communicator& communicator, Deadline deadline);
  // Makes all members hold the state of rank `source`, in pieces of at most kPieceFloats, each of which may
  // take `limit`: from device to device by `devices`, or by the hosts where that is null. The same errors.
  // REQUIRES: agrees() said no; the state is on the device, or the host's, by `devices`.
  absl::Status spread(collective::Communicator& communicator, exchange::GradientExchange* devices, int source,
                      const Clock& clock, Duration limit);
  static constexpr std::size_t kPieceFloats = std::size_t{4} << 20;

  const StateFormat& format() const { return format_; }
  // What a checkpoint of this state holds, brought to the host; valid until the state changes.
  absl::StatusOr<NamedState> snapshot();
  // The same while training goes on on the device: the copy begins, and is waited for. What is given stays,
  // whatever is trained, until take_back(); meanwhile nothing else may need the state on the host. REQUIRES:
  // it is on the device; one at a time.
  absl::Status begin_snapshot();
  absl::StatusOr<NamedState> finish_snapshot();
  void take_back() { lent_ = false; }
  // Into the host's memory, which has the state then. Where that state stands. DATA_LOSS: a tensor is missing
  // or of another size; INVALID_ARGUMENT: made by another job.
  absl::StatusOr<StatePosition> restore(const checkpoint::LoadedCheckpoint& loaded);
  // What a model of this layout holds; valid until `weights` change.
  std::vector<checkpoint::TensorView> model_tensors(std::span<const float> weights) const;
  // model.safetensors of `folder`, written atomically, of the state, brought to the host; its path.
  absl::StatusOr<std::string> write_model(checkpoint::FileStore& files, const std::string& folder);

 private:
  Replica(const v1::TrainingSpec& spec, tensor::ParameterLayout layout, std::span<float> exchanged);
  // Brings the device's state to the host's memory, and leaves it on the device, too.
  absl::Status to_host();
  absl::Status begin_copy();
  absl::Status finish_copy();

  const v1::TrainingSpec& spec_;
  const StateFormat format_;
  const tensor::ParameterLayout layout_;
  std::optional<optimizer::Optimizer> optimizer_;
  std::vector<float> weights_;
  std::span<float> exchanged_;
  Step step_ = 0;
  catch_up::Update last_update_;
  bool whole_ = true;
  std::int64_t compared_ = 0;  // agrees()'s hash of the weights

  std::unique_ptr<optimizer::DeviceState> device_;  // null: there is none
  std::shared_ptr<const void> pinned_;              // exchanged_, for device_
  bool on_device_ = false;
  bool host_is_old_ = false;  // on_device_: steps were taken since
  bool copying_ = false;      // to the host
  bool lent_ = false;         // the host's memory is being written to a checkpoint
  StatePosition copied_;      // what it has there
};

}  // namespace paceline::trainer

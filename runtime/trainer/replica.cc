#include "runtime/trainer/replica.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/status.h"
#include "base/vector_hash.h"
#include "runtime/trainer/model_files.h"
#include "runtime/trainer/passes.h"

namespace paceline::trainer {

absl::StatusOr<std::unique_ptr<Replica>> Replica::create(const v1::TrainingSpec& spec,
                                                         const tensor::Program& program,
                                                         transport::Arena& arena) {
  const tensor::ParameterLayout& layout = program.parameters();
  if (layout.elements == 0) return absl::InvalidArgumentError("the model has no parameters");
  const std::size_t count = layout.elements + kControls;
  PL_ASSIGN_OR_RETURN(const std::span<std::byte> memory, arena.allocate(count * sizeof(float)));
  std::unique_ptr<Replica> replica(
      new Replica(spec, layout, {reinterpret_cast<float*>(memory.data()), count}));
  if (!spec.has_parameter_server()) PL_RETURN_IF_ERROR(replica->make_optimizer());
  program.initialize(spec.seed(), replica->weights_);
  return replica;
}

Replica::Replica(const v1::TrainingSpec& spec, tensor::ParameterLayout layout, std::span<float> exchanged)
    : spec_(spec),
      format_(spec),
      layout_(std::move(layout)),
      weights_(layout_.elements),
      exchanged_(exchanged) {}

absl::Status Replica::make_optimizer() {
  if (optimizer_.has_value()) return absl::OkStatus();
  PL_ASSIGN_OR_RETURN(optimizer_, optimizer::Optimizer::create(spec_.optimizer(), layout_));
  return absl::OkStatus();
}

absl::Status Replica::to_device(const MakeDeviceState& make) {
  if (on_device_) return absl::OkStatus();
  if (device_ == nullptr) {
    PL_ASSIGN_OR_RETURN(device_, make(spec_.optimizer(), layout_));
    pinned_ = device_->pin(std::as_writable_bytes(exchanged_));
  }
  PL_RETURN_IF_ERROR(device_->upload({weights_, optimizer_->state()}, optimizer_->steps()));
  on_device_ = true;
  host_is_old_ = false;
  return absl::OkStatus();
}

absl::Status Replica::to_host() {
  if (!on_device_) return absl::OkStatus();
  PL_RETURN_IF_ERROR(device_->check());
  if (copying_) PL_RETURN_IF_ERROR(finish_copy());
  if (!host_is_old_) return absl::OkStatus();
  PL_RETURN_IF_ERROR(begin_copy());
  return finish_copy();
}

absl::Status Replica::begin_copy() {
  PL_CHECK(!copying_ && !lent_, "the host's memory is one snapshot's at a time");
  PL_RETURN_IF_ERROR(device_->begin_download({weights_, optimizer_->state()}));
  optimizer_->set_steps(device_->steps());
  copying_ = true;
  host_is_old_ = false;
  return absl::OkStatus();
}

absl::Status Replica::finish_copy() {
  copying_ = false;
  return device_->finish_download();
}

absl::Status Replica::begin_snapshot() {
  PL_CHECK(on_device_, "the state is on the device");
  PL_RETURN_IF_ERROR(device_->check());
  PL_RETURN_IF_ERROR(begin_copy());
  copied_ = StatePosition::after(step_);
  copied_.optimizer_steps = device_->steps();
  return absl::OkStatus();
}

absl::StatusOr<NamedState> Replica::finish_snapshot() {
  if (copying_) PL_RETURN_IF_ERROR(finish_copy());
  lent_ = true;
  return format_.name({weights_, optimizer_->state()}, copied_);
}

absl::Status Replica::leave_device() {
  PL_RETURN_IF_ERROR(to_host());
  on_device_ = false;
  return absl::OkStatus();
}

void Replica::release_device() {
  PL_CHECK(!on_device_, "the state is the host's");
  pinned_.reset();
  device_.reset();
}

absl::Status Replica::bind(tensor::Program& program, Purpose purpose) {
  const bool trains = purpose == Purpose::kTraining;
  if (!on_device_) {
    program.bind(weights_, trains ? gradient() : std::span<float>());
    return absl::OkStatus();
  }
  tensor::DeviceVectors vectors = device_->vectors();
  if (!trains) vectors.gradients = nullptr;
  return program.bind_on_device(vectors);
}

absl::Status Replica::update(double learning_rate, double scale) {
  if (on_device_) {
    PL_CHECK(scale == 1, "members on devices leave no samples out");
    PL_RETURN_IF_ERROR(device_->update(learning_rate));
    host_is_old_ = true;
  } else {
    PL_ASSIGN_OR_RETURN(const optimizer::StepReport report,
                        optimizer_->step(weights_, gradient(), learning_rate, scale));
    last_update_ = {step_ + 1, optimizer_->steps(), learning_rate, report.factor};
  }
  ++step_;
  return absl::OkStatus();
}

catch_up::StateView Replica::shared() {
  catch_up::StateView view{weights_, {}, exchanged_.first(layout_.elements)};
  for (const optimizer::StateVector& each : optimizer_->state()) view.optimizer.push_back(each.values);
  return view;
}

catch_up::LearnedState Replica::learned() {
  whole_ = false;
  catch_up::LearnedState state{weights_, {}, nullptr};
  for (const optimizer::StateVector& each : optimizer_->state()) state.optimizer.push_back(each.values);
  state.apply = [this](const catch_up::Update& update, std::size_t begin, std::span<const float> gradient) {
    optimizer_->set_steps(update.optimizer_steps - 1);
    optimizer_->begin_step(update.learning_rate);
    optimizer_->step_part(begin, std::span(weights_).subspan(begin, gradient.size()), gradient,
                          update.factor);
  };
  return state;
}

void Replica::set_learned(const catch_up::Learned& learned) {
  step_ = learned.step;
  optimizer_->set_steps(learned.optimizer_steps);
  whole_ = true;
}

absl::StatusOr<std::uint64_t> Replica::hash() {
  if (!on_device_) return vector_hash(weights_);
  PL_RETURN_IF_ERROR(device_->check());
  return device_->hash();
}

// Members are equal exactly when the least of each value and the least of its complement belong together. The
// optimizer's state follows from the steps that are in it.
absl::StatusOr<bool> Replica::agrees(collective::Communicator& communicator, Deadline deadline) {
  if (communicator.world_size() == 1) return true;
  const absl::StatusOr<std::uint64_t> own_hash = hash();
  if (!own_hash.ok()) return own_fault(own_hash.status());
  compared_ = static_cast<std::int64_t>(*own_hash);
  constexpr std::size_t kValues = 3;
  const std::array<std::int64_t, kValues> own = {step_, static_cast<std::int64_t>(layout_.elements),
                                                 compared_};
  std::array<std::int64_t, 2 * kValues> least;
  for (std::size_t i = 0; i < kValues; ++i) {
    least[i] = own[i];
    least[kValues + i] = ~own[i];
  }
  PL_RETURN_IF_ERROR(
      communicator.all_reduce(least.data(), least.size(), DType::kI64, collective::ReduceOp::kMin, deadline));
  const auto equal = [&](std::size_t i) { return least[i] == ~least[kValues + i]; };
  if (!equal(1)) {
    return absl::FailedPreconditionError(
        str_cat("the members' models differ: this one has ", layout_.elements, " parameters, others from ",
                least[1], " to ", ~least[kValues + 1], "; run the same program on all"));
  }
  return equal(0) && equal(2);
}

absl::Status Replica::spread(collective::Communicator& communicator, exchange::GradientExchange* devices,
                             int source, const Clock& clock, Duration limit) {
  PL_CHECK(on_device_ == (devices != nullptr), "the state is where it is to be spread");
  const auto deadline = [&] { return Deadline::after(clock.now(), limit); };
  std::array<std::int64_t, 3> given = {step_, on_device_ ? device_->steps() : optimizer_->steps(), compared_};
  PL_RETURN_IF_ERROR(communicator.broadcast(given.data(), given.size(), DType::kI64, source, deadline()));
  // A member that holds the same is given what it has: should the source go, the others still have its state.
  whole_ = given[0] == step_ && given[2] == compared_;
  std::vector<float*> vectors = {weights_.data()};
  for (const optimizer::StateVector& state : optimizer_->state()) vectors.push_back(state.values.data());
  if (on_device_) vectors = device_->state_vectors();
  for (float* const vector : vectors) {
    for (std::size_t at = 0; at < layout_.elements; at += kPieceFloats) {
      const std::size_t piece = std::min(layout_.elements - at, kPieceFloats);
      PL_RETURN_IF_ERROR(on_device_
                             ? devices->broadcast(vector + at, piece, source, deadline())
                             : communicator.broadcast(vector + at, piece, DType::kF32, source, deadline()));
    }
  }
  if (!whole_) {
    step_ = given[0];
    if (on_device_) {
      device_->taken(given[1]);
      host_is_old_ = true;
    } else {
      optimizer_->set_steps(given[1]);
    }
  }
  whole_ = true;
  return absl::OkStatus();
}

absl::StatusOr<NamedState> Replica::snapshot() {
  PL_RETURN_IF_ERROR(to_host());
  StatePosition position = StatePosition::after(step_);
  position.optimizer_steps = optimizer_->steps();
  return format_.name({weights_, optimizer_->state()}, position);
}

absl::StatusOr<StatePosition> Replica::restore(const checkpoint::LoadedCheckpoint& loaded) {
  PL_ASSIGN_OR_RETURN(StatePosition position, format_.restore(loaded, {weights_, optimizer_state()}));
  on_device_ = false;
  whole_ = true;
  step_ = position.step;
  if (optimizer_.has_value()) optimizer_->set_steps(position.optimizer_steps);
  return position;
}

std::vector<checkpoint::TensorView> Replica::model_tensors(std::span<const float> weights) const {
  std::vector<checkpoint::TensorView> tensors;
  for (const tensor::Parameter& p : layout_.parameters) {
    tensors.push_back(
        checkpoint::tensor_view<float>(p.name, DType::kF32, p.dims, weights.subspan(p.offset, p.count)));
  }
  return tensors;
}

absl::StatusOr<std::string> Replica::write_model(checkpoint::FileStore& files, const std::string& folder) {
  PL_RETURN_IF_ERROR(to_host());
  return write_model_files(files, folder, {step_, vector_hash(weights_)}, model_tensors(weights_), {},
                           nullptr);
}

}  // namespace paceline::trainer

#include "runtime/trainer/replica.h"

#include <algorithm>
#include <array>

#include "base/status.h"
#include "base/vector_hash.h"
#include "runtime/trainer/model_files.h"

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

absl::Status Replica::update(double learning_rate) {
  PL_RETURN_IF_ERROR(optimizer_->step(weights_, gradient(), learning_rate).status());
  ++step_;
  return absl::OkStatus();
}

std::uint64_t Replica::hash() const {
  return vector_hash(weights_);
}

// Members are equal exactly when the least of each value and the least of its complement belong together. The
// optimizer's state follows from the steps that are in it.
absl::Status Replica::align(collective::Communicator& communicator, const Clock& clock, Duration limit) {
  if (communicator.world_size() == 1) return absl::OkStatus();
  const auto deadline = [&] { return Deadline::after(clock.now(), limit); };
  constexpr std::size_t kValues = 3;
  const std::array<std::int64_t, kValues> own = {step_, static_cast<std::int64_t>(layout_.elements),
                                                 static_cast<std::int64_t>(hash())};
  std::array<std::int64_t, 2 * kValues> least;
  for (std::size_t i = 0; i < kValues; ++i) {
    least[i] = own[i];
    least[kValues + i] = ~own[i];
  }
  PL_RETURN_IF_ERROR(communicator.all_reduce(least.data(), least.size(), DType::kI64,
                                             collective::ReduceOp::kMin, deadline()));
  const auto equal = [&](std::size_t i) { return least[i] == ~least[kValues + i]; };
  if (!equal(1)) {
    return absl::FailedPreconditionError(
        str_cat("the members' models differ: this one has ", layout_.elements, " parameters, others from ",
                least[1], " to ", ~least[kValues + 1], "; run the same program on all"));
  }
  if (equal(0) && equal(2)) return absl::OkStatus();

  std::array<std::int64_t, 2> counts = {step_, optimizer_->steps()};
  PL_RETURN_IF_ERROR(communicator.broadcast(counts.data(), counts.size(), DType::kI64, 0, deadline()));
  std::vector<std::span<float>> vectors = {weights_};
  for (const optimizer::StateVector& state : optimizer_->state()) vectors.push_back(state.values);
  for (std::span<float> rest : vectors) {
    for (; !rest.empty(); rest = rest.subspan(std::min(rest.size(), kPieceFloats))) {
      const std::size_t piece = std::min(rest.size(), kPieceFloats);
      PL_RETURN_IF_ERROR(communicator.broadcast(rest.data(), piece, DType::kF32, 0, deadline()));
    }
  }
  step_ = counts[0];
  optimizer_->set_steps(counts[1]);
  return absl::OkStatus();
}

NamedState Replica::snapshot() {
  StatePosition position = StatePosition::after(step_);
  position.optimizer_steps = optimizer_->steps();
  return format_.name({weights_, optimizer_->state()}, position);
}

absl::StatusOr<StatePosition> Replica::restore(const checkpoint::LoadedCheckpoint& loaded) {
  PL_ASSIGN_OR_RETURN(StatePosition position, format_.restore(loaded, {weights_, optimizer_state()}));
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
  return write_model_files(files, folder, {step_, hash()}, model_tensors(weights_), {}, nullptr);
}

}  // namespace paceline::trainer

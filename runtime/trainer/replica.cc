#include "runtime/trainer/replica.h"

#include <algorithm>
#include <array>

#include "base/status.h"
#include "runtime/checkpoint/spec_hash.h"
#include "runtime/trainer/weights_hash.h"

namespace paceline::trainer {

absl::StatusOr<std::unique_ptr<Replica>> Replica::create(const v1::TrainingSpec& spec,
                                                         const tensor::Program& program,
                                                         transport::Arena& arena) {
  const tensor::ParameterLayout& layout = program.parameters();
  if (layout.elements == 0) return absl::InvalidArgumentError("the model has no parameters");
  PL_ASSIGN_OR_RETURN(optimizer::Optimizer made, optimizer::Optimizer::create(spec.optimizer(), layout));
  const std::size_t count = layout.elements + kControls;
  PL_ASSIGN_OR_RETURN(const std::span<std::byte> memory, arena.allocate(count * sizeof(float)));
  std::unique_ptr<Replica> replica(
      new Replica(spec, layout, std::move(made), {reinterpret_cast<float*>(memory.data()), count}));
  program.initialize(spec.seed(), replica->weights_);
  return replica;
}

Replica::Replica(const v1::TrainingSpec& spec, tensor::ParameterLayout layout, optimizer::Optimizer optimizer,
                 std::span<float> exchanged)
    : spec_hash_(checkpoint::spec_hash(spec)),
      global_batch_(spec.global_batch_size()),
      seed_(spec.seed()),
      layout_(std::move(layout)),
      optimizer_(std::move(optimizer)),
      weights_(layout_.elements),
      exchanged_(exchanged) {}

absl::Status Replica::update(double learning_rate) {
  PL_RETURN_IF_ERROR(optimizer_.step(weights_, gradient(), learning_rate).status());
  ++step_;
  return absl::OkStatus();
}

std::uint64_t Replica::hash() const {
  return weights_hash(weights_);
}

// Members are equal exactly when the least of each value and the least of its complement belong together. The
// optimizer's state follows from the steps that are in it.
absl::Status Replica::align(collective::Communicator& communicator, Deadline deadline) {
  if (communicator.world_size() == 1) return absl::OkStatus();
  constexpr std::size_t kValues = 3;
  const std::array<std::int64_t, kValues> own = {step_, static_cast<std::int64_t>(layout_.elements),
                                                 static_cast<std::int64_t>(hash())};
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
  if (equal(0) && equal(2)) return absl::OkStatus();
  return broadcast(communicator, deadline);
}

absl::Status Replica::broadcast(collective::Communicator& communicator, Deadline deadline) {
  std::array<std::int64_t, 2> counts = {step_, optimizer_.steps()};
  PL_RETURN_IF_ERROR(communicator.broadcast(counts.data(), counts.size(), DType::kI64, 0, deadline));
  PL_RETURN_IF_ERROR(communicator.broadcast(weights_.data(), weights_.size(), DType::kF32, 0, deadline));
  for (const optimizer::StateVector& state : optimizer_.state()) {
    PL_RETURN_IF_ERROR(
        communicator.broadcast(state.values.data(), state.values.size(), DType::kF32, 0, deadline));
  }
  step_ = counts[0];
  optimizer_.set_steps(counts[1]);
  return absl::OkStatus();
}

std::vector<checkpoint::TensorView> Replica::tensors() {
  const auto flat = static_cast<std::int64_t>(layout_.elements);
  std::vector<checkpoint::TensorView> tensors = {
      checkpoint::tensor_view<float>("weights", DType::kF32, {flat}, weights_)};
  for (const optimizer::StateVector& state : optimizer_.state()) {
    tensors.push_back(
        checkpoint::tensor_view<float>(str_cat("optimizer/", state.name), DType::kF32, {flat}, state.values));
  }
  return tensors;
}

checkpoint::Snapshot Replica::snapshot() {
  checkpoint::Snapshot snapshot;
  snapshot.progress.step = step_;
  snapshot.progress.ledger_position = step_ * global_batch_;
  snapshot.progress.schedule_step = step_;
  snapshot.progress.seed = seed_;
  snapshot.progress.spec_hash = spec_hash_;
  snapshot.tensors = tensors();
  return snapshot;
}

absl::Status Replica::restore(const checkpoint::LoadedCheckpoint& loaded) {
  if (loaded.progress.spec_hash != spec_hash_) {
    return absl::InvalidArgumentError(
        str_cat("checkpoint ", loaded.name,
                " was made with another model, kind of optimizer, global batch, seed or precision; continue "
                "with those, or begin in another checkpoint.location"));
  }
  PL_RETURN_IF_ERROR(loaded.copy_to("weights", DType::kF32, std::as_writable_bytes(std::span(weights_))));
  for (const optimizer::StateVector& state : optimizer_.state()) {
    PL_RETURN_IF_ERROR(
        loaded.copy_to(str_cat("optimizer/", state.name), DType::kF32, std::as_writable_bytes(state.values)));
  }
  step_ = loaded.progress.step;
  optimizer_.set_steps(step_);
  return absl::OkStatus();
}

absl::StatusOr<std::string> Replica::write_model(const std::string& folder) {
  std::vector<checkpoint::TensorView> tensors;
  for (const tensor::Parameter& p : layout_.parameters) {
    tensors.push_back(checkpoint::tensor_view<float>(
        p.name, DType::kF32, p.dims, std::span<const float>(weights_).subspan(p.offset, p.count)));
  }
  const std::string path = str_cat(folder, "/model.safetensors");
  PL_RETURN_IF_ERROR(checkpoint::write_model(path, tensors, {{"step", str_cat(step_)}, {"format", "pt"}}));
  return path;
}

}  // namespace paceline::trainer

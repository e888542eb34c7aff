#include "runtime/trainer/state_format.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "runtime/checkpoint/spec_hash.h"

namespace paceline::trainer {

namespace {

// I64: optimizer steps, units per step, the number below which all units are applied but those that follow.
// Only where the number of steps does not say the same.
constexpr char kPosition[] = "progress/units";
constexpr std::size_t kFixed = 3;
constexpr std::int64_t kMaxNumber = std::int64_t{1} << 53;

absl::StatusOr<StatePosition> decode(const checkpoint::LoadedCheckpoint& loaded,
                                     const checkpoint::TensorView& tensor) {
  const auto wrong = [&](const std::string& what) {
    return absl::DataLossError(str_cat("checkpoint ", loaded.name, ": tensor ", kPosition, ": ", what));
  };
  std::vector<std::int64_t> values(tensor.data.size() / sizeof(std::int64_t));
  PL_RETURN_IF_ERROR(loaded.copy_to(kPosition, DType::kI64, std::as_writable_bytes(std::span(values))));
  if (values.size() < kFixed) return wrong(str_cat(values.size(), " numbers; at least ", kFixed));
  StatePosition position;
  position.step = loaded.progress.step;
  position.optimizer_steps = values[0];
  position.units.units_per_step = values[1];
  position.units.below = values[2];
  std::vector<pserver::Unit>& missing = position.units.missing;
  missing.assign(values.begin() + kFixed, values.end());
  const auto sane = [](std::int64_t value) { return value >= 0 && value <= kMaxNumber; };
  if (!std::all_of(values.begin(), values.end(), sane)) return wrong("a number is out of range");
  const bool rising =
      std::adjacent_find(missing.begin(), missing.end(), std::greater_equal<>()) == missing.end();
  if (!rising || (!missing.empty() && missing.back() >= position.units.below)) {
    return wrong("the missing units are not in order");
  }
  return position;
}

// The manifest says several times how far the job is, and has no checksum of its own.
absl::Status check_counts(const checkpoint::LoadedCheckpoint& loaded, std::int64_t batch,
                          std::uint64_t seed) {
  const checkpoint::Progress& p = loaded.progress;
  const auto refuse = [&](const std::string& what) {
    return absl::DataLossError(str_cat("checkpoint ", loaded.name, ": manifest: ", what,
                                       "; it was altered: take it from where it was saved, or remove this "
                                       "checkpoint"));
  };
  if (p.schedule_step != p.step)
    return refuse(str_cat("'scheduleStep' ", p.schedule_step, " is not 'step' ", p.step));
  if (p.ledger_position / batch != p.step || p.ledger_position % batch != 0) {
    return refuse(str_cat("'ledgerPosition' ", p.ledger_position, " is not 'step' ", p.step,
                          " times the global batch of ", batch));
  }
  if (p.seed != seed) return refuse(str_cat("'seed' ", p.seed, " is not the job's, ", seed));
  return absl::OkStatus();
}

}  // namespace

StateFormat::StateFormat(const v1::TrainingSpec& spec)
    : spec_hash_(checkpoint::spec_hash(spec)), global_batch_(spec.global_batch_size()), seed_(spec.seed()) {}

NamedState StateFormat::name(const StateVectors& vectors, const StatePosition& position) const {
  NamedState named;
  checkpoint::Progress& progress = named.snapshot.progress;
  progress.step = position.step;
  progress.ledger_position = position.step * global_batch_;
  progress.schedule_step = position.step;
  progress.seed = seed_;
  progress.spec_hash = spec_hash_;
  const auto flat = static_cast<std::int64_t>(vectors.weights.size());
  auto& tensors = named.snapshot.tensors;
  tensors.push_back(checkpoint::tensor_view<float>("weights", DType::kF32, {flat}, vectors.weights));
  for (const optimizer::StateVector& state : vectors.optimizer) {
    tensors.push_back(
        checkpoint::tensor_view<float>(str_cat("optimizer/", state.name), DType::kF32, {flat}, state.values));
  }
  if (position.is_whole()) return named;
  named.position = {position.optimizer_steps, position.units.units_per_step, position.units.below};
  named.position.insert(named.position.end(), position.units.missing.begin(), position.units.missing.end());
  tensors.push_back(checkpoint::tensor_view<std::int64_t>(
      kPosition, DType::kI64, {static_cast<std::int64_t>(named.position.size())}, named.position));
  return named;
}

absl::StatusOr<StatePosition> StateFormat::restore(const checkpoint::LoadedCheckpoint& loaded,
                                                   const StateVectors& vectors) const {
  if (loaded.progress.spec_hash != spec_hash_) {
    return absl::InvalidArgumentError(
        str_cat("checkpoint ", loaded.name,
                " was made with another model, kind of optimizer, global batch, seed or precision; continue "
                "with those, or begin in another checkpoint.location"));
  }
  PL_RETURN_IF_ERROR(check_counts(loaded, global_batch_, seed_));
  StatePosition position = StatePosition::after(loaded.progress.step);
  if (const checkpoint::TensorView* tensor = loaded.find(kPosition); tensor != nullptr) {
    PL_ASSIGN_OR_RETURN(position, decode(loaded, *tensor));
  }
  PL_RETURN_IF_ERROR(loaded.copy_to("weights", DType::kF32, std::as_writable_bytes(vectors.weights)));
  for (const optimizer::StateVector& state : vectors.optimizer) {
    const std::string name = str_cat("optimizer/", state.name);
    if (loaded.find(name) == nullptr) {
      return absl::InvalidArgumentError(
          str_cat("checkpoint ", loaded.name, " has no '", name, "': it was made with another ",
                  "spec.training.optimizer.", state.name,
                  "; continue with that, or begin in another checkpoint.location"));
    }
    PL_RETURN_IF_ERROR(loaded.copy_to(name, DType::kF32, std::as_writable_bytes(state.values)));
  }
  return position;
}

}  // namespace paceline::trainer

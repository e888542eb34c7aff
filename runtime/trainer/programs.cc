#include "runtime/trainer/programs.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/status.h"
#include "runtime/tensor/memory_plan.h"
#include "runtime/trainer/odd_sizes.h"
#include "runtime/trainer/passes.h"
#include "runtime/trainer/plan.h"

namespace paceline::trainer {

namespace {

// An error of compiling, where only the job's own are told as they are: no peer has part in it.
absl::Status of_this_device(const absl::Status& compiled) {
  const bool own = compiled.ok() || absl::IsResourceExhausted(compiled) || absl::IsInvalidArgument(compiled);
  return own ? compiled : own_fault(compiled);
}

}  // namespace

// Whichever program can be made before the view is known gives the initial weights.
absl::Status Programs::open(MakeReplica make_replica) {
  if (workload_.data.test != nullptr && workload_.data.test->size() > 0) {
    std::int64_t rows = evaluation_rows(spec_, workload_);
    auto program = workload_.compile(Purpose::kEvaluation, rows, {});
    // How many find room beside all else is known once that has its own; until then there is one's.
    evaluation_waits_ = absl::IsResourceExhausted(program.status()) && rows > 1;
    if (evaluation_waits_) program = workload_.compile(Purpose::kEvaluation, rows = 1, {});
    PL_RETURN_IF_ERROR(evaluation_room(program.status(), rows, false, workload_.room != nullptr));
    PL_ASSIGN_OR_RETURN(replica_, make_replica(**program));
    (*program)->bind(replica_->weights(), {});
    PL_ASSIGN_OR_RETURN(evaluator_,
                        Evaluator::create(workload_.data.test, *std::move(program), workload_.sparse));
    return absl::OkStatus();
  }
  PL_ASSIGN_OR_RETURN(const auto program, workload_.compile(Purpose::kTraining, 1, {}));
  PL_ASSIGN_OR_RETURN(replica_, make_replica(*program));
  if (workload_.room != nullptr) {
    PL_ASSIGN_OR_RETURN(const tensor::MemoryUse use, program->memory());
    queue_half_weights_ = use.half_weights;
  }
  return absl::OkStatus();
}

// The operators of all passes now, where a lack of memory is an error and not in the middle of a step.
absl::Status Programs::compile(std::span<const std::int64_t> rows, const Part& part) {
  const bool copies = replica_->on_device() == nullptr;
  const bool evaluates = (evaluator_ != nullptr || evaluation_waits_) && part.evaluates;
  const Holding held = !copies     ? Holding::kTrains
                       : evaluates ? Holding::kCopiesAndEvaluates
                                   : Holding::kCopies;
  if (copies) PL_RETURN_IF_ERROR(check_lasting(held));
  std::int64_t most = 1;
  for (const std::int64_t count : rows) most = std::max(most, pass_rows(spec_, count, part.trainers));
  const absl::Status compiled = compile_passes(rows, most, held, part.trainers);
  if (absl::IsResourceExhausted(compiled)) return no_room(compiled, most, held);
  if (!compiled.ok()) return of_this_device(compiled);
  if (evaluation_waits_ && evaluates) PL_RETURN_IF_ERROR(compile_evaluation(held));
  if (copies) PL_RETURN_IF_ERROR(check_lasting(held));  // what of it is taken when a first pass needs it
  PL_RETURN_IF_ERROR(replica_->bind(*training_, Purpose::kTraining));
  training_->weights_changed();
  return log_memory(part.warns);
}

// Passes of `most` samples find no room: the advice says what helps.
absl::Status Programs::no_room(const absl::Status& compiled, std::int64_t most, Holding held) {
  PL_ASSIGN_OR_RETURN(const DeviceUse use, device_use(held));
  std::vector<std::string> advice;
  if (most > 1)
    advice.emplace_back(
        "set training.microBatchSize to what fits (samples of one pass: results change by rounding alone)");
  if (!spec_.recompute_activations()) advice.emplace_back("set training.recomputeActivations: true");
  if (spec_.precision() != v1::PRECISION_BF16) advice.emplace_back("set training.precision: BF16");
  const bool helps = use.found.evaluation >= use.found.now.total_bytes / tensor::kDriversPart;
  if (use.found.evaluation > 0 && helps)  // on processors nothing is known of it
    advice.push_back(str_cat("set training.evaluation.batchSize to fewer: passes of evaluation hold ",
                             tensor::mebibytes(use.found.evaluation), " MiB"));
  advice.push_back(str_cat("take ", more_memory(workload_.room != nullptr), " or a smaller model"));
  const std::string begin =
      workload_.room == nullptr
          ? ""
          : str_cat("; ", room_at_begin_text(workload_.room_at_begin.free_bytes, members_on_device_));
  return absl::ResourceExhaustedError(str_cat("training finds no room (out of memory): ", compiled.message(),
                                              "; ", absl::StrJoin(advice, "; or "), begin));
}

// Beside all that training takes.
absl::Status Programs::compile_evaluation(Holding held) {
  const std::int64_t rows = evaluation_rows(spec_, workload_);
  evaluator_.reset();  // the one's room is free for it
  PL_ASSIGN_OR_RETURN(const tensor::LeftRoom leave, still_wanted(held));
  auto program = workload_.compile(Purpose::kEvaluation, rows, leave);
  PL_RETURN_IF_ERROR(
      of_this_device(evaluation_room(program.status(), rows, true, workload_.room != nullptr)));
  const absl::Status bound = replica_->bind(**program, Purpose::kEvaluation);
  if (!bound.ok()) return own_fault(bound);
  PL_ASSIGN_OR_RETURN(evaluator_,
                      Evaluator::create(workload_.data.test, *std::move(program), workload_.sparse));
  evaluation_waits_ = false;
  return absl::OkStatus();
}

absl::Status Programs::compile_passes(std::span<const std::int64_t> rows, std::int64_t most, Holding held,
                                      std::int64_t trainers) {
  if (training_ == nullptr || training_->max_rows() < most) {
    PL_ASSIGN_OR_RETURN(const tensor::LeftRoom leave, still_wanted(held));
    PL_ASSIGN_OR_RETURN(training_, workload_.compile(Purpose::kTraining, most, leave));
  }
  for (const std::int64_t count : rows) {
    const std::int64_t pass = std::max<std::int64_t>(1, pass_rows(spec_, count, trainers));
    for (const std::int64_t size : {std::min(pass, count), count % pass}) {
      if (size > 0) PL_RETURN_IF_ERROR(training_->reserve(size));
    }
  }
  return absl::OkStatus();
}

absl::Status Programs::unbind() {
  for (tensor::Program* const program :
       {training_.get(), evaluator_ == nullptr ? nullptr : &evaluator_->program()}) {
    if (program == nullptr) continue;
    if (const absl::Status left = program->unbind(); !left.ok()) return own_fault(left);
  }
  return absl::OkStatus();
}

absl::Status Programs::bind_evaluation() {
  if (evaluator_ == nullptr) return absl::OkStatus();
  const absl::Status bound = replica_->bind(evaluator_->program(), Purpose::kEvaluation);
  return bound.ok() ? bound : own_fault(bound);
}

absl::Status Programs::check_lasting(Holding holding) {
  if (workload_.room == nullptr) return absl::OkStatus();
  PL_ASSIGN_OR_RETURN(const DeviceUse use, device_use(holding));
  return check_room(use.needs, use.found);
}

absl::StatusOr<tensor::LeftRoom> Programs::still_wanted(Holding holding) {
  PL_ASSIGN_OR_RETURN(const DeviceUse use, device_use(holding));
  const std::size_t total = use.needs.total();
  return tensor::LeftRoom{total - std::min(total, use.found.taken), "weights and gradient"};
}

absl::StatusOr<Programs::DeviceUse> Programs::device_use(Holding holding) {
  if (workload_.room == nullptr) return DeviceUse();
  const auto room = workload_.room();
  if (!room.ok()) return own_fault(room.status());
  tensor::MemoryUse evaluation, training;
  const auto look = [](const tensor::Program* program, tensor::MemoryUse& use) -> absl::Status {
    if (program == nullptr) return absl::OkStatus();
    const auto found = program->memory();
    if (!found.ok()) return own_fault(found.status());
    use = *found;
    return absl::OkStatus();
  };
  PL_RETURN_IF_ERROR(look(evaluator_ == nullptr ? nullptr : &evaluator_->program(), evaluation));
  PL_RETURN_IF_ERROR(look(training_.get(), training));
  const std::size_t vectors =
      holding == Holding::kTrains ? replica_->device_bytes() : evaluation.vectors + training.vectors;
  const bool several = evaluator_ != nullptr && evaluator_->program().max_rows() > 1;
  return DeviceUse{
      lasting_memory(spec_, replica_->layout().elements, holding),
      {.now = *room,
       .free_at_begin = workload_.room_at_begin.free_bytes,
       .taken = vectors + std::max({queue_half_weights_, evaluation.half_weights, training.half_weights}),
       .evaluation = several ? evaluation.activations + evaluation.batch : 0,
       .training = training.activations + training.batch,
       .members = members_on_device_}};
}

absl::Status Programs::log_memory(bool warns) {
  const auto training = training_->memory();
  if (!training.ok()) return own_fault(training.status());
  if (training->total == 0) return absl::OkStatus();
  std::size_t evaluation = 0;
  if (evaluator_ != nullptr) {
    const auto used = evaluator_->program().memory();
    if (!used.ok()) return own_fault(used.status());
    evaluation = used->activations + used->batch + used->vectors;
  }
  optimizer::DeviceState* const state = replica_->on_device();
  const auto mib = [](std::size_t bytes) { return str_cat(tensor::mebibytes(bytes), " MiB"); };
  logger_.info(str_cat(
      "memory of the device: ", mib((state == nullptr ? 0 : state->bytes()) + training->vectors),
      state == nullptr ? " for weights and gradient, " : " for weights, gradient and optimizer state, ",
      training->half_weights == 0 ? "" : str_cat(mib(training->half_weights), " for weights as bf16, "),
      mib(training->activations), " for activations, ", mib(training->batch), " for the batch, ",
      mib(evaluation), " for evaluation; ", tensor::free_mebibytes(training->free), " of ",
      mib(training->total), " are left; ",
      room_at_begin_text(workload_.room_at_begin.free_bytes, members_on_device_)));
  if (!warns) return absl::OkStatus();
  if (const std::string odd = odd_sizes_warning(spec_); !odd.empty()) logger_.warning(odd);
  return absl::OkStatus();
}

}  // namespace paceline::trainer

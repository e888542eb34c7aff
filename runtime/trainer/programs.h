#pragma once

// The compiled programs of a member: passes of training for the view that it is in, and of evaluation where
// samples are held out. They share the device's memory with the member's state, so a lack of it is found
// here: before the first step, in words that say what takes the memory and what helps.
//
//   open()      an evaluation's program, whose parameters give the replica; or a small one for that alone
//   compile()   passes of training for a view's share, then an evaluation that found no room at first
//
// Programs of a workload that are compiled anew keep nothing of the ones before; they are bound to the
// replica's state, wherever that is. The training thread's.

#include <cstdint>
#include <memory>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "base/log.h"
#include "proto/paceline/v1/training.pb.h"
#include "runtime/tensor/program.h"
#include "runtime/trainer/evaluator.h"
#include "runtime/trainer/memory_budget.h"
#include "runtime/trainer/replica.h"
#include "runtime/trainer/workload.h"

namespace paceline::trainer {

class Programs {
 public:
  // All outlive it, and so does the replica. The workload may be opened later, but before open().
  Programs(const v1::TrainingSpec& spec, const Workload& workload, const Logger& logger)
      : spec_(spec), workload_(workload), logger_(logger) {}

  // Once. `make_replica` makes it of the first program that there is. RESOURCE_EXHAUSTED; the errors of
  // compiling and of `make_replica`.
  using MakeReplica = absl::FunctionRef<absl::StatusOr<Replica*>(const tensor::Program& program)>;
  absl::Status open(MakeReplica make_replica);

  // A member's part in a view.
  struct Part {
    std::int64_t trainers = 0;  // as pass_rows() has it
    bool evaluates = false;     // it does where samples are held out
    bool warns = false;         // of sizes that the device does badly with
  };
  // All passes for units of these sizes, bound to the replica. RESOURCE_EXHAUSTED where they find no room,
  // with advice; other errors of the device are this member's own (own_fault()).
  absl::Status compile(std::span<const std::int64_t> rows, const Part& part);

  // REQUIRES: compile() was OK.
  tensor::Program& training() { return *training_; }
  // Null: nothing is held out. compile() may replace it.
  Evaluator* evaluator() { return evaluator_.get(); }

  // The members of the view that are on this one's device; 0: not known.
  void set_members_on_device(int members) { members_on_device_ = members; }
  // RESOURCE_EXHAUSTED where what is held so finds no room in the device's own memory (memory_budget.h).
  absl::Status check_lasting(Holding holding);
  // No program holds the replica's state any more.
  absl::Status unbind();
  // The evaluation's program follows the replica's state to where that is now.
  absl::Status bind_evaluation();

 private:
  struct DeviceUse {
    LastingMemory needs;
    FoundRoom found;
  };
  // Zeros where the memory is the host's.
  absl::StatusOr<DeviceUse> device_use(Holding holding);
  // The part of that which is taken only when a first pass needs it.
  absl::StatusOr<tensor::LeftRoom> still_wanted(Holding holding);
  absl::Status compile_passes(std::span<const std::int64_t> rows, std::int64_t most, Holding held,
                              std::int64_t trainers);
  absl::Status compile_evaluation(Holding held);
  absl::Status no_room(const absl::Status& compiled, std::int64_t most, Holding held);
  // The log gets the uses of the device's memory, and sizes that it does badly with; nothing where it is the
  // host's.
  absl::Status log_memory(bool warns);

  const v1::TrainingSpec& spec_;
  const Workload& workload_;
  const Logger& logger_;
  Replica* replica_ = nullptr;  // null before open()
  std::unique_ptr<Evaluator> evaluator_;
  std::unique_ptr<tensor::Program> training_;
  bool evaluation_waits_ = false;       // evaluator_ takes one sample at a time: for compile()
  std::size_t queue_half_weights_ = 0;  // that the device's queue had before any program of a view
  int members_on_device_ = 0;
};

}  // namespace paceline::trainer

#include "runtime/tensor/executable.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "runtime/tensor/memory_plan.h"
#include "runtime/tensor/ready_ranges.h"

// Tensors that share memory (an operator that works in place, a reshape) form a group with one lifetime: from
// the first operation that writes one of them to the last that reads one. An operator's scratch is a lifetime
// of one operation; what it prepares is there from the begin of a pass to the end of the operation.

namespace paceline::tensor {

namespace {

constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

// Of a device with a queue: each telling parts the work that is recorded as a whole. 4 MiB.
constexpr std::size_t kLeastTold = std::size_t{1} << 20;

// When each tensor is written first and read last.
struct Uses {
  std::vector<std::size_t> first;
  std::vector<std::size_t> last;
};

Uses find_uses(const Schedule& schedule) {
  Uses uses{std::vector<std::size_t>(schedule.tensors.size(), kNever),
            std::vector<std::size_t>(schedule.tensors.size(), 0)};
  const auto touch = [&](TensorId id, std::size_t operation) {
    uses.first[index(id)] = std::min(uses.first[index(id)], operation);
    uses.last[index(id)] = std::max(uses.last[index(id)], operation);
  };
  for (std::size_t o = 0; o < schedule.operations.size(); ++o) {
    for (const TensorId id : schedule.operations[o].inputs) touch(id, o);
    for (const TensorId id : schedule.operations[o].outputs) touch(id, o);
  }
  return uses;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Executable>> Executable::make(Schedule schedule, Device& device,
                                                             Precision precision, Queue* queue) {
  auto result = std::unique_ptr<Executable>(new Executable);
  result->schedule_ = std::move(schedule);
  result->queue_ = queue;
  result->lowering_ = device.begin(result->schedule_, precision, queue);
  for (const Operation& operation : result->schedule_.operations) {
    auto made = result->lowering_->lower(operation);
    if (!made.ok())
      return with_context(made.status(), str_cat(operation.name, " (", operation_name(operation.kind), ")"));
    result->operators_.push_back(*std::move(made));
  }
  result->plan(*result->lowering_);
  result->ranges_ =
      queue == nullptr ? result->schedule_.ready : gather_ranges(result->schedule_.ready, kLeastTold);
  return result;
}

void Executable::plan(const Lowering& lowering) {
  const std::size_t count = schedule_.tensors.size();
  Uses uses = find_uses(schedule_);
  std::vector<std::size_t> group(count);  // by tensor: the tensor that its memory is planned as
  for (std::size_t i = 0; i < count; ++i) group[i] = i;
  for (std::size_t o = 0; o < operators_.size(); ++o) {
    const auto needs = operators_[o]->needs();
    if (needs.sharing == Operator::Sharing::kNever) continue;
    const auto in = index(schedule_.operations[o].inputs[needs.shared_input]);
    const auto out = index(schedule_.operations[o].outputs[needs.shared_output]);
    const bool arena =
        schedule_.tensors[in].place == Place::kArena && schedule_.tensors[out].place == Place::kArena;
    const bool always = needs.sharing == Operator::Sharing::kAlways;
    PL_CHECK(arena || !always, "only arena tensors can be the same memory");
    if (!arena ||
        (!always && (uses.last[group[in]] > o || lowering.bytes(static_cast<TensorId>(out)) >
                                                     lowering.bytes(static_cast<TensorId>(group[in]))))) {
      continue;
    }
    group[out] = group[in];
    uses.last[group[in]] = std::max(uses.last[group[in]], uses.last[out]);
  }

  std::vector<Lifetime> lifetimes;
  std::vector<std::size_t> place(count, kNever);
  for (std::size_t i = 0; i < count; ++i) {
    if (schedule_.tensors[i].place != Place::kArena || group[i] != i || uses.first[i] == kNever) continue;
    place[i] = lifetimes.size();
    lifetimes.push_back({lowering.bytes(static_cast<TensorId>(i)), uses.first[i], uses.last[i]});
  }
  const std::size_t scratch_begin = lifetimes.size();
  for (std::size_t o = 0; o < operators_.size(); ++o)
    lifetimes.push_back({operators_[o]->needs().scratch_bytes, o, o});
  const std::size_t prepared_begin = lifetimes.size();
  for (std::size_t o = 0; o < operators_.size(); ++o) {
    const std::size_t bytes = operators_[o]->needs().prepared_bytes;
    if (bytes > 0) lifetimes.push_back({bytes, 0, o});
  }

  for (std::size_t i = 0; i < count; ++i) {
    const Tensor& t = schedule_.tensors[i];
    if (t.place != Place::kCache) continue;
    cache_element_bytes_ =
        lowering.bytes(static_cast<TensorId>(i)) / static_cast<std::size_t>(element_count(t.dims));
  }
  cache_bytes_ = schedule_.cache_elements * cache_element_bytes_;

  const MemoryPlan plan = plan_memory(lifetimes);
  arena_bytes_ = plan.bytes;
  tensor_offsets_.assign(count, 0);
  for (std::size_t i = 0; i < count; ++i) {
    if (place[group[i]] != kNever) tensor_offsets_[i] = plan.offsets[place[group[i]]];
  }
  scratch_offsets_.assign(plan.offsets.begin() + static_cast<std::ptrdiff_t>(scratch_begin),
                          plan.offsets.begin() + static_cast<std::ptrdiff_t>(prepared_begin));
  prepared_offsets_.assign(operators_.size(), 0);
  for (std::size_t i = prepared_begin; i < lifetimes.size(); ++i)
    prepared_offsets_[lifetimes[i].last] = plan.offsets[i];
}

void* Executable::address(TensorId tensor, std::byte* arena, const ExternalMemory& memory) const {
  const Tensor& t = schedule_.tensors[index(tensor)];
  switch (t.place) {
    case Place::kArena:
      return arena + tensor_offsets_[index(tensor)];
    case Place::kInputs:
      return memory.inputs;
    case Place::kTokens:
      return memory.tokens;
    case Place::kLabels:
      return memory.labels;
    case Place::kOffsets:
      return memory.offsets;
    case Place::kInputGradients:
      return memory.input_gradients;
    case Place::kOffsetGradients:
      return memory.offset_gradients;
    case Place::kScores:
      return memory.scores;
    case Place::kWeights:
      return memory.weights == nullptr ? nullptr : memory.weights + t.offset;
    case Place::kGradients:
      return memory.gradients == nullptr ? nullptr : memory.gradients + t.offset;
    case Place::kResult:
      return memory.result;
    case Place::kCache:
      return memory.cache == nullptr ? nullptr : memory.cache + t.offset * cache_element_bytes_;
  }
  return nullptr;
}

void Executable::bind(std::byte* arena, const ExternalMemory& memory) {
  recordings_.clear();
  for (std::size_t o = 0; o < operators_.size(); ++o) {
    Operator::Addresses addresses;
    for (const TensorId id : schedule_.operations[o].inputs)
      addresses.inputs.push_back(address(id, arena, memory));
    for (const TensorId id : schedule_.operations[o].outputs)
      addresses.outputs.push_back(address(id, arena, memory));
    addresses.scratch = arena + scratch_offsets_[o];
    addresses.prepared = arena + prepared_offsets_[o];
    operators_[o]->bind(addresses);
  }
}

absl::Status Executable::named(const absl::Status& status, std::size_t o) const {
  const Operation& operation = schedule_.operations[o];
  return status.ok()
             ? status
             : with_context(status, str_cat(operation.name, " (", operation_name(operation.kind), ")"));
}

absl::Status Executable::prepare(std::size_t begin, std::size_t end, const RunContext& context) {
  for (std::size_t o = begin; o < end; ++o) PL_RETURN_IF_ERROR(named(operators_[o]->prepare(context), o));
  return absl::OkStatus();
}

// What an observer hears of is done: of a queue, each operation is waited for.
absl::Status Executable::run_one(std::size_t o, const RunContext& context, OperationObserver* observer) {
  const Operation& operation = schedule_.operations[o];
  if (observer != nullptr) observer->begin();
  absl::Status status = operators_[o]->run(context);
  if (status.ok() && observer != nullptr && queue_ != nullptr) {
    status = queue_->set_mark(0);
    if (status.ok()) status = queue_->wait_for_mark(0);
  }
  if (status.ok() && observer != nullptr) observer->end(operation_name(operation.kind), operation.name);
  return named(status, o);
}

absl::Status Executable::run(std::size_t begin, std::size_t end, const RunContext& context,
                             OperationObserver* observer) {
  for (std::size_t o = begin; o < end; ++o) PL_RETURN_IF_ERROR(run_one(o, context, observer));
  return absl::OkStatus();
}

}  // namespace paceline::tensor

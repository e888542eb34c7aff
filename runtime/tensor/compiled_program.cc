#include "runtime/tensor/compiled_program.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status.h"
#include "runtime/tensor/initial_weights.h"
#include "runtime/tensor/memory_plan.h"
#include "runtime/tensor/recompute.h"
#include "runtime/tensor/schedule.h"

namespace paceline::tensor {

namespace {

// Row counts whose operators are kept; the one used longest ago makes room.
constexpr std::size_t kMaxExecutables = 8;

// Marks of the queue, behind that of the result (device_copies.cc): the end of the backward pass; then one
// for each range of gradients that goes to the host.
constexpr std::size_t kEndMark = kMarksOfPrograms + 1;
constexpr std::size_t kFirstRangeMark = kMarksOfPrograms + 2;

// Parts of a pass, as they are recorded: the backward pass as one, or from the third on in those at whose
// ends ranges are told.
constexpr std::size_t kForwardPart = 0;
constexpr std::size_t kBackwardPart = 1;
constexpr std::size_t kFirstToldPart = 2;

}  // namespace

CompiledProgram::CompiledProgram(GraphBuilder graph, ParameterLayout layout, Device& device,
                                 const CompileOptions& options)
    : graph_(std::move(graph)),
      layout_(std::move(layout)),
      device_(device),
      options_(options),
      leave_(options.leave),
      areas_(graph_, options.max_rows, options.mode == Mode::kTraining) {}

absl::Status CompiledProgram::prepare() {
  PL_RETURN_IF_ERROR(device_.enter());
  queue_ = options_.queue;
  if (queue_ == nullptr) {
    PL_ASSIGN_OR_RETURN(queue_, device_.open_queue());
  }
  PL_ASSIGN_OR_RETURN(batch_memory_, device_.allocate_staging(areas_.bytes()));
  batch_ = areas_.view(batch_memory_->data());
  if (queue_ != nullptr) {
    PL_ASSIGN_OR_RETURN(copies_, DeviceCopies::make(device_, *queue_, areas_, batch_memory_->data(),
                                                    layout_.elements, options_.mode == Mode::kTraining));
    external_ = copies_->memory();
  } else {
    external_ = areas_.addresses(batch_memory_->data());
    external_.result = result_.data();
  }
  entries_.reserve(kMaxExecutables);
  return executable(options_.max_rows).status();
}

absl::Status CompiledProgram::grow_arena(std::size_t bytes) {
  if (bytes <= arena_bytes_) return absl::OkStatus();
  arena_.reset();
  arena_bytes_ = 0;
  absl::StatusOr<std::unique_ptr<DeviceMemory>> made = device_.allocate(bytes);
  if (!made.ok()) {  // no executable has memory any more
    entries_.clear();
    return made.status();
  }
  arena_ = *std::move(made);
  arena_bytes_ = bytes;
  bind_entries();
  return absl::OkStatus();
}

absl::Status CompiledProgram::take_cache(std::size_t bytes) {
  if (bytes == 0 || cache_ != nullptr) return absl::OkStatus();  // it has one row count, hence one size
  std::shared_ptr<KeyValueCache> cache = options_.cache;
  if (cache == nullptr) cache = std::make_shared<KeyValueCache>();
  if (cache->memory == nullptr) {
    PL_ASSIGN_OR_RETURN(cache->memory, device_.allocate(bytes));
    cache->bytes = bytes;
  }
  PL_CHECK(cache->bytes == bytes, "the programs of a key/value cache have attentions of the same shapes");
  cache_ = std::move(cache);
  external_.cache = cache_->memory->data();
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Executable>> CompiledProgram::make_executable(std::int64_t rows) const {
  Schedule schedule = make_schedule(graph_, layout_, rows, options_.mode == Mode::kTraining);
  schedule = join_products(std::move(schedule), device_.joins());
  if (options_.recompute_activations) schedule = recompute_activations(std::move(schedule));
  schedule = join_sums(std::move(schedule), device_.joins());
  return Executable::make(std::move(schedule), device_, options_.precision, queue_.get());
}

absl::Status CompiledProgram::check_room(std::int64_t rows, std::size_t bytes) const {
  if (bytes <= arena_bytes_) return absl::OkStatus();
  PL_ASSIGN_OR_RETURN(const std::optional<MemoryRoom> room, device_.room());
  if (!room.has_value()) return absl::OkStatus();
  const std::size_t spare = room->total_bytes / kDriversPart;
  const std::size_t most = room->free_bytes + arena_bytes_;  // which goes first
  const std::size_t free = most - std::min(most, spare + leave_.bytes);
  if (bytes <= free) return absl::OkStatus();
  // Activations grow with the samples, nearly in proportion.
  const auto fit = static_cast<std::int64_t>(static_cast<double>(rows) * static_cast<double>(free) /
                                             static_cast<double>(bytes));
  return absl::ResourceExhaustedError(
      str_cat(rows, rows == 1 ? " sample needs " : " samples at once need ", mebibytes(bytes),
              " MiB of the device's memory for activations, and ", free_mebibytes(free), " of its ",
              mebibytes(room->total_bytes), " MiB are free, beside ", mebibytes(spare), " for the driver",
              leave_.bytes == 0 ? "" : str_cat(" and ", mebibytes(leave_.bytes), " for ", leave_.what),
              fit == 0 ? "" : str_cat("; about ", fit, " may fit")));
}

absl::StatusOr<MemoryUse> CompiledProgram::memory() const {
  if (copies_ == nullptr) return MemoryUse();
  PL_RETURN_IF_ERROR(device_.enter());
  PL_ASSIGN_OR_RETURN(const std::optional<MemoryRoom> room, device_.room());
  return MemoryUse{.activations = arena_bytes_,
                   .half_weights = queue_->half_weight_bytes(),
                   .batch = copies_->batch_bytes(),
                   .cache = cache_ == nullptr ? 0 : cache_->bytes,
                   .vectors = copies_->vector_bytes(),
                   .free = room.has_value() ? room->free_bytes : 0,
                   .total = room.has_value() ? room->total_bytes : 0};
}

absl::StatusOr<std::size_t> CompiledProgram::bytes() const {
  PL_RETURN_IF_ERROR(device_.enter());
  PL_ASSIGN_OR_RETURN(const auto made, make_executable(options_.max_rows));
  return areas_.bytes() + made->arena_bytes() + made->shared_bytes();
}

absl::StatusOr<Executable*> CompiledProgram::executable(std::int64_t rows) {
  ++uses_;
  for (Entry& entry : entries_) {
    if (entry.rows != rows) continue;
    entry.used = uses_;
    return entry.executable.get();
  }
  last_ = nullptr;
  PL_RETURN_IF_ERROR(device_.enter());
  PL_ASSIGN_OR_RETURN(auto made, make_executable(rows));
  PL_RETURN_IF_ERROR(take_cache(made->cache_bytes()));
  PL_RETURN_IF_ERROR(check_room(rows, made->arena_bytes()));
  PL_RETURN_IF_ERROR(made->allocate());
  PL_RETURN_IF_ERROR(grow_arena(made->arena_bytes()));
  made->bind(arena_->data(), external_);
  if (entries_.size() == kMaxExecutables) {
    entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                    [](const Entry& a, const Entry& b) { return a.used < b.used; }));
  }
  entries_.push_back({rows, uses_, std::move(made)});
  return entries_.back().executable.get();
}

void CompiledProgram::bind(std::span<float> weights, std::span<float> gradients) {
  PL_CHECK(weights.size() == layout_.elements, "the bound weights must have parameters().elements elements");
  PL_CHECK(gradients.size() == layout_.elements || (gradients.empty() && options_.mode == Mode::kInference),
           "the bound gradients must have parameters().elements elements");
  if (!gradients.empty()) clear_padding(layout_, gradients);
  weights_changed();
  bound_ = true;
  device_vectors_ = {};
  if (copies_ != nullptr) {
    copies_->bind(weights, gradients);
    return;
  }
  external_.weights = weights.data();
  external_.gradients = gradients.data();
  bind_entries();
}

void CompiledProgram::bind_entries() {
  for (Entry& entry : entries_) entry.executable->bind(arena_->data(), external_);
}

absl::Status CompiledProgram::bind_on_device(const DeviceVectors& vectors) {
  if (copies_ == nullptr) return Program::bind_on_device(vectors);
  PL_CHECK(vectors.weights != nullptr && vectors.version != nullptr, "the bound weights are somewhere");
  PL_CHECK(vectors.gradients != nullptr || options_.mode == Mode::kInference,
           "the bound gradients are somewhere");
  PL_RETURN_IF_ERROR(copies_->bind_on_device());
  bound_ = true;
  device_vectors_ = vectors;
  external_.weights = vectors.weights;
  external_.gradients = vectors.gradients;
  bind_entries();
  return absl::OkStatus();
}

absl::Status CompiledProgram::unbind() {
  if (copies_ == nullptr || on_device()) return absl::OkStatus();
  bound_ = false;
  return copies_->release_vectors();
}

void CompiledProgram::initialize(std::uint64_t seed, std::span<float> weights) const {
  fill_initial_weights(graph_, layout_, seed, options_.threads, weights);
}

absl::Status CompiledProgram::reserve(std::int64_t rows) {
  PL_RETURN_IF_ERROR(Program::reserve(rows));
  return executable(rows).status();
}

absl::Status CompiledProgram::run_forward(std::int64_t rows, const RunContext& context) {
  PL_CHECK(rows > 0 && rows <= options_.max_rows, "forward takes 1 to max_rows() samples");
  PL_CHECK(bound_ || layout_.elements == 0, "bind() the weights before forward");
  last_ = nullptr;
  PL_ASSIGN_OR_RETURN(Executable* const found, executable(rows));
  PL_RETURN_IF_ERROR(device_.enter());
  if (copies_ != nullptr) {
    PL_RETURN_IF_ERROR(copies_->upload_batch(rows));
    if (!on_device()) PL_RETURN_IF_ERROR(upload_weights());
    // Of a whole pass all of it, so that the result, which the host waits for, comes behind what is prepared.
    PL_RETURN_IF_ERROR(
        found->prepare(0, context.whole_pass ? found->operation_count() : found->forward_count(), context));
  }
  if (context.whole_pass) PL_RETURN_IF_ERROR(queue_->timer().begin_pass(!context.accumulate));
  PL_RETURN_IF_ERROR(add(*found, context, kForwardPart, [&]() -> absl::Status {
    if (copies_ != nullptr) PL_RETURN_IF_ERROR(copies_->take_batch(rows));
    PL_RETURN_IF_ERROR(found->run(0, found->forward_count(), context, observer_));
    return copies_ == nullptr ? absl::OkStatus() : copies_->download_result(rows);
  }));
  if (copies_ != nullptr) PL_RETURN_IF_ERROR(copies_->mark_result());
  last_ = found;
  last_rows_ = rows;
  return absl::OkStatus();
}

absl::Status CompiledProgram::upload_weights() {
  PL_ASSIGN_OR_RETURN(const bool made, copies_->upload_weights(weights_version_));
  const ExternalMemory& copies = copies_->memory();
  if (made) leave_ = {};  // it has what was left
  if (!made && external_.weights == copies.weights) return absl::OkStatus();
  external_.weights = copies.weights;
  external_.gradients = copies.gradients;
  bind_entries();
  return absl::OkStatus();
}

absl::StatusOr<ForwardResult> CompiledProgram::result() {
  const double* values = result_.data();
  if (copies_ != nullptr) {
    PL_ASSIGN_OR_RETURN(values, copies_->wait_for_result());
  }
  return ForwardResult{values[0], static_cast<std::int64_t>(values[1]), static_cast<std::int64_t>(values[2])};
}

absl::Status CompiledProgram::add(Executable& executable, const RunContext& context, std::size_t part,
                                  absl::FunctionRef<absl::Status()> work) {
  // An observer hears of single operations.
  if (queue_ == nullptr || observer_ != nullptr) return work();
  return queue_->repeat(executable.recordings().of(context, part), work);
}

absl::Status CompiledProgram::run_backward(const RunContext& context, const OnReady& on_ready) {
  if (copies_ != nullptr && !context.whole_pass)
    PL_RETURN_IF_ERROR(last_->prepare(last_->forward_count(), last_->operation_count(), context));
  if (on_device() && !on_ready) {
    PL_RETURN_IF_ERROR(add(*last_, context, kBackwardPart, [&]() -> absl::Status {
      PL_RETURN_IF_ERROR(last_->run(last_->forward_count(), last_->operation_count(), context, observer_));
      return copies_->download_batch_gradients(last_rows_);
    }));
  } else {
    PL_RETURN_IF_ERROR(add_backward_parts(context, on_ready));
  }
  if (copies_ == nullptr) return absl::OkStatus();
  if (context.whole_pass) PL_RETURN_IF_ERROR(queue_->timer().end());
  return queue_->set_mark(kEndMark);
}

absl::Status CompiledProgram::add_backward_parts(const RunContext& context, const OnReady& on_ready) {
  const std::span<const ReadyRange> ranges = last_->ranges();
  std::size_t done = last_->forward_count(), part = kFirstToldPart;
  for (std::size_t i = 0; i < ranges.size();) {
    const std::size_t begin = done;
    done = ranges[i].operation + 1;
    PL_RETURN_IF_ERROR(
        add(*last_, context, part++, [&] { return last_->run(begin, done, context, observer_); }));
    for (; i < ranges.size() && ranges[i].operation + 1 == done; ++i)
      PL_RETURN_IF_ERROR(publish_range(i, on_ready));
  }
  if (done == last_->operation_count() && !leaves_gradients()) return absl::OkStatus();
  return add(*last_, context, part, [&]() -> absl::Status {
    PL_RETURN_IF_ERROR(last_->run(done, last_->operation_count(), context, observer_));
    return copies_ == nullptr ? absl::OkStatus() : copies_->download_batch_gradients(last_rows_);
  });
}

absl::Status CompiledProgram::publish_range(std::size_t number, const OnReady& on_ready) {
  const ReadyRange& range = last_->ranges()[number];
  if (copies_ == nullptr || on_device()) {
    if (on_ready) on_ready(range.begin, range.end);
    return absl::OkStatus();
  }
  // The host's gradients may not be pinned: what goes there is not recorded.
  PL_RETURN_IF_ERROR(copies_->download_gradients(range.begin, range.end));
  return queue_->set_mark(kFirstRangeMark + number);
}

absl::Status CompiledProgram::publish_ranges(const OnReady& on_ready) {
  if (copies_ == nullptr) return absl::OkStatus();
  if (on_device()) return leaves_gradients() ? queue_->wait_for_mark(kEndMark) : absl::OkStatus();
  const std::span<const ReadyRange> ranges = last_->ranges();
  for (std::size_t i = 0; on_ready && i < ranges.size(); ++i) {
    PL_RETURN_IF_ERROR(queue_->wait_for_mark(kFirstRangeMark + i));
    on_ready(ranges[i].begin, ranges[i].end);
  }
  return queue_->wait_for_mark(kEndMark);
}

absl::StatusOr<ForwardResult> CompiledProgram::forward(std::int64_t rows) {
  PL_RETURN_IF_ERROR(run_forward(rows, context(1, false, false)));
  return result();
}

absl::Status CompiledProgram::backward(float scale, bool accumulate, const OnReady& on_ready) {
  PL_CHECK(options_.mode == Mode::kTraining, "an inference program has no backward");
  PL_CHECK(last_ != nullptr, "one backward follows each forward");
  PL_RETURN_IF_ERROR(device_.enter());
  PL_RETURN_IF_ERROR(run_backward(context(scale, accumulate, false), on_ready));
  PL_RETURN_IF_ERROR(publish_ranges(on_ready));
  last_ = nullptr;
  return absl::OkStatus();
}

absl::Status CompiledProgram::pass(std::int64_t rows, float scale, bool accumulate, const OnResult& on_result,
                                   const OnReady& on_ready) {
  if (copies_ == nullptr) return Program::pass(rows, scale, accumulate, on_result, on_ready);
  PL_CHECK(options_.mode == Mode::kTraining, "an inference program has no backward");
  const RunContext both = context(scale, accumulate, true);
  PL_RETURN_IF_ERROR(run_forward(rows, both));
  PL_RETURN_IF_ERROR(run_backward(both, on_ready));
  PL_ASSIGN_OR_RETURN(const ForwardResult forward_result, result());
  const absl::Status heard = on_result(forward_result);
  const OnReady nobody;
  PL_RETURN_IF_ERROR(publish_ranges(heard.ok() ? on_ready : nobody));
  last_ = nullptr;
  return heard;
}

}  // namespace paceline::tensor

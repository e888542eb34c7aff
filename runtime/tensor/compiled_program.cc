#include "runtime/tensor/compiled_program.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/rng.h"
#include "base/status.h"
#include "runtime/tensor/schedule.h"

namespace paceline::tensor {

namespace {

// Row counts whose operators are kept; the one used longest ago makes room.
constexpr std::size_t kMaxExecutables = 8;

// Marks of the queue: the forward pass's end; then one for each range of gradients, and the backward pass's
// end.
constexpr std::size_t kForwardMark = 0;
constexpr std::size_t kFirstRangeMark = 1;

// FNV-1a, so that a name gives the same stream on every machine.
std::uint64_t name_stream(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

}  // namespace

CompiledProgram::CompiledProgram(GraphBuilder graph, ParameterLayout layout, Device& device,
                                 const CompileOptions& options)
    : graph_(std::move(graph)),
      layout_(std::move(layout)),
      device_(device),
      options_(options),
      areas_(graph_, options.max_rows, options.mode == Mode::kTraining) {}

absl::Status CompiledProgram::prepare() {
  PL_RETURN_IF_ERROR(device_.enter());
  PL_ASSIGN_OR_RETURN(queue_, device_.open_queue());
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
  PL_ASSIGN_OR_RETURN(arena_, device_.allocate(bytes));
  arena_bytes_ = bytes;
  for (Entry& entry : entries_) entry.executable->bind(arena_->data(), external_);
  return absl::OkStatus();
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
  PL_ASSIGN_OR_RETURN(auto made,
                      Executable::make(make_schedule(graph_, layout_, rows, options_.mode == Mode::kTraining),
                                       device_, options_.precision, queue_.get()));
  PL_RETURN_IF_ERROR(grow_arena(made->arena_bytes()));
  made->bind(arena_->data(), external_);
  if (entries_.size() == kMaxExecutables) {
    entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                    [](const Entry& a, const Entry& b) { return a.used < b.used; }));
  }
  entries_.push_back({rows, uses_, std::move(made)});
  return entries_.back().executable.get();
}

void CompiledProgram::clear_padding(std::span<float> vector) const {
  for (std::size_t i = 0; i < layout_.parameters.size(); ++i) {
    const Parameter& p = layout_.parameters[i];
    const std::size_t end =
        i + 1 < layout_.parameters.size() ? layout_.parameters[i + 1].offset : layout_.elements;
    for (std::size_t e = p.offset + p.count; e < end; ++e) vector[e] = 0;
  }
}

void CompiledProgram::bind(std::span<float> weights, std::span<float> gradients) {
  PL_CHECK(weights.size() == layout_.elements, "the bound weights must have parameters().elements elements");
  PL_CHECK(gradients.size() == layout_.elements || (gradients.empty() && options_.mode == Mode::kInference),
           "the bound gradients must have parameters().elements elements");
  if (!gradients.empty()) clear_padding(gradients);
  weights_changed();
  bound_ = true;
  if (copies_ != nullptr) {
    copies_->bind(weights, gradients);
    return;
  }
  external_.weights = weights.data();
  external_.gradients = gradients.data();
  for (Entry& entry : entries_) entry.executable->bind(arena_->data(), external_);
}

void CompiledProgram::initialize(std::uint64_t seed, std::span<float> weights) const {
  PL_CHECK(weights.size() == layout_.elements, "the weights must have parameters().elements elements");
  clear_padding(weights);
  for (const Node& node : graph_.nodes()) {
    if (node.kind != OpKind::kParameter) continue;
    const auto p = std::find_if(layout_.parameters.begin(), layout_.parameters.end(),
                                [&](const Parameter& q) { return q.name == node.name; });
    Rng rng(seed, name_stream(node.name));
    for (float& w : weights.subspan(p->offset, p->count)) {
      switch (node.init.kind) {
        case Init::Kind::kConstant:
          w = node.init.value;
          break;
        case Init::Kind::kNormal:
          w = node.init.value * rng.normal();
          break;
        case Init::Kind::kUniform:
          w = node.init.value * (2 * rng.uniform() - 1);
          break;
      }
    }
  }
}

absl::Status CompiledProgram::reserve(std::int64_t rows) {
  PL_RETURN_IF_ERROR(Program::reserve(rows));
  return executable(rows).status();
}

absl::Status CompiledProgram::run_forward(std::int64_t rows) {
  PL_CHECK(rows > 0 && rows <= options_.max_rows, "forward takes 1 to max_rows() samples");
  PL_CHECK(bound_ || layout_.elements == 0, "bind() the weights before forward");
  last_ = nullptr;
  PL_ASSIGN_OR_RETURN(Executable* const found, executable(rows));
  PL_RETURN_IF_ERROR(device_.enter());
  if (copies_ != nullptr) PL_RETURN_IF_ERROR(copies_->upload(rows, weights_version_));
  PL_RETURN_IF_ERROR(found->forward({weights_version_, 1, false, batch_.tokens}, observer_));
  if (copies_ != nullptr) {
    PL_RETURN_IF_ERROR(copies_->download_result(rows));
    PL_RETURN_IF_ERROR(queue_->set_mark(kForwardMark));
  }
  last_ = found;
  last_rows_ = rows;
  return absl::OkStatus();
}

absl::StatusOr<ForwardResult> CompiledProgram::result() {
  const double* values = result_.data();
  if (copies_ != nullptr) {
    PL_RETURN_IF_ERROR(queue_->wait_for_mark(kForwardMark));
    values = copies_->result();
  }
  return ForwardResult{values[0], static_cast<std::int64_t>(values[1]), static_cast<std::int64_t>(values[2])};
}

absl::Status CompiledProgram::run_backward(float scale, bool accumulate, const OnReady& on_ready) {
  const RunContext context{weights_version_, scale, accumulate, batch_.tokens};
  if (copies_ == nullptr) {
    const auto tell = [&](std::size_t begin, std::size_t end) {
      if (on_ready) on_ready(begin, end);
      return absl::OkStatus();
    };
    return last_->backward(context, tell, observer_);
  }
  std::size_t mark = kFirstRangeMark;
  const auto download = [&](std::size_t begin, std::size_t end) {
    PL_RETURN_IF_ERROR(copies_->download_gradients(begin, end));
    return queue_->set_mark(mark++);
  };
  PL_RETURN_IF_ERROR(last_->backward(context, download, observer_));
  PL_RETURN_IF_ERROR(copies_->download_batch_gradients(last_rows_));
  return queue_->set_mark(mark);
}

absl::Status CompiledProgram::tell_ranges(const OnReady& on_ready) {
  if (copies_ == nullptr) return absl::OkStatus();
  const std::span<const ReadyRange> ranges = last_->ranges();
  for (std::size_t i = 0; on_ready && i < ranges.size(); ++i) {
    PL_RETURN_IF_ERROR(queue_->wait_for_mark(kFirstRangeMark + i));
    on_ready(ranges[i].begin, ranges[i].end);
  }
  return queue_->wait_for_mark(kFirstRangeMark + ranges.size());
}

absl::StatusOr<ForwardResult> CompiledProgram::forward(std::int64_t rows) {
  PL_RETURN_IF_ERROR(run_forward(rows));
  return result();
}

absl::Status CompiledProgram::backward(float scale, bool accumulate, const OnReady& on_ready) {
  PL_CHECK(options_.mode == Mode::kTraining, "an inference program has no backward");
  PL_CHECK(last_ != nullptr, "one backward follows each forward");
  PL_RETURN_IF_ERROR(device_.enter());
  PL_RETURN_IF_ERROR(run_backward(scale, accumulate, on_ready));
  PL_RETURN_IF_ERROR(tell_ranges(on_ready));
  last_ = nullptr;
  return absl::OkStatus();
}

absl::Status CompiledProgram::pass(std::int64_t rows, float scale, bool accumulate, const OnResult& on_result,
                                   const OnReady& on_ready) {
  if (copies_ == nullptr) return Program::pass(rows, scale, accumulate, on_result, on_ready);
  PL_CHECK(options_.mode == Mode::kTraining, "an inference program has no backward");
  PL_RETURN_IF_ERROR(run_forward(rows));
  PL_RETURN_IF_ERROR(run_backward(scale, accumulate, on_ready));
  PL_ASSIGN_OR_RETURN(const ForwardResult forward_result, result());
  const absl::Status heard = on_result(forward_result);
  const OnReady nobody;
  PL_RETURN_IF_ERROR(tell_ranges(heard.ok() ? on_ready : nobody));
  last_ = nullptr;
  return heard;
}

}  // namespace paceline::tensor

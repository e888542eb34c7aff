#include "runtime/tensor/compiler.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/check.h"
#include "base/rng.h"
#include "base/status.h"
#include "runtime/tensor/device.h"
#include "runtime/tensor/executable.h"
#include "runtime/tensor/schedule.h"

// Operators are made for exact shapes, so a program keeps one executable for each row count that it has seen:
// the full batch, a smaller last one, a member's uneven share. All of them work in one arena.

namespace paceline::tensor {

namespace {

// Row counts whose operators are kept; the one used longest ago makes room.
constexpr std::size_t kMaxExecutables = 8;

// FNV-1a, so that a name gives the same stream on every machine.
std::uint64_t name_stream(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

std::int64_t labels_per_sample(const GraphBuilder& graph) {
  const Node& loss = graph.nodes()[static_cast<std::size_t>(graph.loss().id)];
  const Dims& dims = graph.dims(loss.inputs[0]);
  return loss.kind == OpKind::kSoftmaxCrossEntropy && dims.size() == 2 ? dims[0] : 1;
}

class CompiledProgram final : public Program {
 public:
  CompiledProgram(GraphBuilder graph, ParameterLayout layout, Device& device, const CompileOptions& options)
      : graph_(std::move(graph)), layout_(std::move(layout)), device_(device), options_(options) {}

  absl::Status prepare();

  const ParameterLayout& parameters() const override { return layout_; }
  std::int64_t max_rows() const override { return options_.max_rows; }
  void bind(std::span<float> weights, std::span<float> gradients) override;
  void initialize(std::uint64_t seed, std::span<float> weights) const override;
  void weights_changed() override { ++weights_version_; }
  BatchMemory batch() override;
  ForwardResult forward(std::int64_t rows) override;
  void backward(float scale, bool accumulate, const OnReady& on_ready) override;
  absl::Status reserve(std::int64_t rows) override;
  void observe(OperationObserver* observer) override { observer_ = observer; }

 private:
  struct Entry {
    std::int64_t rows;
    std::uint64_t used;
    std::unique_ptr<Executable> executable;
  };
  absl::StatusOr<Executable*> executable(std::int64_t rows);
  absl::Status grow_arena(std::size_t bytes);
  void clear_padding(std::span<float> vector) const;

  const GraphBuilder graph_;
  const ParameterLayout layout_;
  Device& device_;
  const CompileOptions options_;

  std::unique_ptr<DeviceMemory> batch_memory_;
  BatchMemory batch_;
  std::unique_ptr<DeviceMemory> arena_;
  std::size_t arena_bytes_ = 0;
  std::vector<Entry> entries_;
  ExternalMemory external_;
  std::array<double, 3> result_{};

  Executable* last_ = nullptr;  // of the last forward; null: backward has consumed it
  std::uint64_t weights_version_ = 1;
  std::uint64_t uses_ = 0;
  OperationObserver* observer_ = nullptr;
};

absl::Status CompiledProgram::prepare() {
  std::int64_t inputs = 0, tokens = 0, offsets = 0;
  bool trained = false;
  for (const Node& node : graph_.nodes()) {
    if (node.kind == OpKind::kInput) inputs = element_count(node.dims);
    if (node.kind == OpKind::kInput) trained = node.attributes.trained;
    if (node.kind == OpKind::kTokens) tokens = node.dims[0];
    if (node.kind == OpKind::kOffset) offsets = 1;
  }
  const bool training = options_.mode == Mode::kTraining;
  const bool scores =
      graph_.nodes()[static_cast<std::size_t>(graph_.loss().id)].kind == OpKind::kSigmoidCrossEntropy;
  // In the order of the memory: inputs, tokens, labels, offsets, input gradients, offset gradients, scores.
  const std::array<std::int64_t, 7> per_row = {inputs,
                                               tokens,
                                               labels_per_sample(graph_),
                                               offsets,
                                               training && trained ? inputs : 0,
                                               training ? offsets : 0,
                                               scores ? 1 : 0};
  std::array<std::size_t, 7> counts{}, begins{};
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < per_row.size(); ++i) {
    counts[i] = static_cast<std::size_t>(options_.max_rows * per_row[i]);
    begins[i] = bytes;
    bytes += (counts[i] * 4 + 63) / 64 * 64;
  }
  PL_ASSIGN_OR_RETURN(batch_memory_, device_.allocate(bytes));
  const auto floats = [&](std::size_t i) {
    return std::span(reinterpret_cast<float*>(batch_memory_->data() + begins[i]), counts[i]);
  };
  const auto integers = [&](std::size_t i) {
    return std::span(reinterpret_cast<std::int32_t*>(batch_memory_->data() + begins[i]), counts[i]);
  };
  batch_ = {floats(0), integers(1), integers(2), floats(3), floats(4), floats(5), floats(6)};
  external_.inputs = batch_.inputs.data();
  external_.tokens = batch_.tokens.data();
  external_.labels = batch_.labels.data();
  external_.offsets = batch_.offsets.data();
  external_.input_gradients = floats(4).data();
  external_.offset_gradients = floats(5).data();
  external_.scores = floats(6).data();
  external_.result = result_.data();
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
  device_.enter();
  PL_ASSIGN_OR_RETURN(auto made,
                      Executable::make(make_schedule(graph_, layout_, rows, options_.mode == Mode::kTraining),
                                       device_, options_.precision));
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
  external_.weights = weights.data();
  external_.gradients = gradients.data();
  if (!gradients.empty()) clear_padding(gradients);
  for (Entry& entry : entries_) entry.executable->bind(arena_->data(), external_);
  weights_changed();
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

BatchMemory CompiledProgram::batch() {
  return batch_;
}

absl::Status CompiledProgram::reserve(std::int64_t rows) {
  PL_RETURN_IF_ERROR(Program::reserve(rows));
  return executable(rows).status();
}

ForwardResult CompiledProgram::forward(std::int64_t rows) {
  PL_CHECK(rows > 0 && rows <= options_.max_rows, "forward takes 1 to max_rows() samples");
  PL_CHECK(external_.weights != nullptr || layout_.elements == 0, "bind() the weights before forward");
  auto found = executable(rows);
  PL_CHECK(found.ok(), "no operators for this row count; reserve() reports why");
  last_ = *found;
  device_.enter();
  last_->forward({weights_version_, 1, false}, observer_);
  return {result_[0], static_cast<std::int64_t>(result_[1]), static_cast<std::int64_t>(result_[2])};
}

void CompiledProgram::backward(float scale, bool accumulate, const OnReady& on_ready) {
  PL_CHECK(options_.mode == Mode::kTraining, "an inference program has no backward");
  PL_CHECK(last_ != nullptr, "one backward follows each forward");
  device_.enter();
  last_->backward({weights_version_, scale, accumulate}, on_ready, observer_);
  last_ = nullptr;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Program>> compile(const GraphBuilder& graph, Device& device,
                                                 const CompileOptions& options) {
  if (options.max_rows < 1)
    return absl::InvalidArgumentError(str_cat("max_rows is ", options.max_rows, ", must be at least 1"));
  PL_ASSIGN_OR_RETURN(auto layout, lay_out_parameters(graph));
  auto program = std::make_unique<CompiledProgram>(graph, std::move(layout), device, options);
  PL_RETURN_IF_ERROR(program->prepare());
  return program;
}

}  // namespace paceline::tensor

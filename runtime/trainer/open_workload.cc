#include "runtime/trainer/open_workload.h"

#include <algorithm>
#include <utility>

#include "base/machine_load.h"
#include "base/status.h"
#include "runtime/model/build.h"
#include "runtime/model/wide_and_deep.h"
#include "runtime/tensor/compiler.h"
#include "runtime/tensor/schedule.h"
#include "runtime/trainer/evaluator.h"
#include "runtime/trainer/memory_budget.h"
#include "runtime/trainer/plan.h"

namespace paceline::trainer {

namespace {

// What programs are compiled from; shared by them, because the device outlives its programs.
struct Source {
  std::unique_ptr<model::Model> model;
  data::SampleShape shape;
  std::shared_ptr<tensor::Device> device;
  std::shared_ptr<tensor::Queue> queue;  // of all programs; null: the device has none
  tensor::Precision precision = tensor::Precision::kF32;
  bool recompute_activations = false;
  int threads = 1;
};

tensor::CompileOptions options_of(const Source& source, Purpose purpose, std::int64_t max_rows) {
  tensor::CompileOptions options;
  options.max_rows = max_rows;
  options.precision = source.precision;
  options.recompute_activations = source.recompute_activations;
  options.threads = source.threads;
  options.queue = source.queue;
  options.mode = purpose == Purpose::kTraining ? tensor::Mode::kTraining : tensor::Mode::kInference;
  return options;
}

absl::StatusOr<std::unique_ptr<tensor::Program>> compile_for(const Source& source, Purpose purpose,
                                                             std::int64_t max_rows,
                                                             const tensor::LeftRoom& leave) {
  tensor::GraphBuilder graph;
  PL_RETURN_IF_ERROR(source.model->build(graph, source.shape));
  tensor::CompileOptions options = options_of(source, purpose, max_rows);
  options.leave = leave;
  return tensor::compile(graph, *source.device, options);
}

// Products of matrices: 1 GFLOP, and where the device has its own memory 137, which no copy outweighs.
absl::StatusOr<std::unique_ptr<tensor::Program>> compile_probe(const Source& source) {
  constexpr std::int64_t kWidth = 1024, kRows = 256, kRowsOnDevice = 8192;
  constexpr int kLayers = 2, kLayersOnDevice = 8;
  const bool on_host = source.queue == nullptr;
  PL_RETURN_IF_ERROR(source.device->enter());
  tensor::GraphBuilder graph;
  tensor::Value x = graph.input({kWidth});
  const int layers = on_host ? kLayers : kLayersOnDevice;
  for (int layer = 0; layer < layers; ++layer) x = graph.dense(str_cat("product", layer), x, kWidth);
  graph.scores(graph.dense("end", x, 1));
  PL_RETURN_IF_ERROR(graph.status());
  return tensor::compile(graph, *source.device,
                         options_of(source, Purpose::kEvaluation, on_host ? kRows : kRowsOnDevice));
}

// Labels that the model can be told; 0: it says nothing of them.
std::int64_t classes_of(const v1::ModelSpec& model) {
  if (model.has_mlp()) return model.mlp().classes();
  if (model.has_cnn()) return model.cnn().classes();
  if (model.has_gpt()) return model.gpt().vocabulary_size();
  return model.has_wide_and_deep() ? 2 : 0;
}

// Both sets' samples are trained alike: what one of them does not know is not known.
data::SampleShape shape_of(const data::Datasets& data) {
  data::SampleShape shape = data.train->shape();
  if (data.test == nullptr) return shape;
  const data::SampleShape& test = data.test->shape();  // it may have classes that training never sees
  shape.classes = std::max(shape.classes, test.classes);
  shape.smallest_label = std::min(shape.smallest_label, test.smallest_label);
  if (test.vocabularies.size() != shape.vocabularies.size()) shape.vocabularies.clear();
  for (std::size_t f = 0; f < shape.vocabularies.size(); ++f)
    shape.vocabularies[f] = std::max(shape.vocabularies[f], test.vocabularies[f]);
  return shape;
}

absl::StatusOr<data::Datasets> open_data(const v1::TrainingSpec& spec, const Registry& registry,
                                         int threads) {
  data::OpenOptions options;
  options.seed = spec.seed();
  options.threads = threads;
  options.custom = registry.datasets;
  options.classes = classes_of(spec.model());
  if (spec.model().has_gpt()) {
    options.block_size = spec.model().gpt().block_size();
    options.vocabulary_size = spec.model().gpt().vocabulary_size();
  }
  PL_ASSIGN_OR_RETURN(data::Datasets data, data::open_datasets(spec.data(), options));
  if (data.test != nullptr) {
    const data::SampleShape &train = data.train->shape(), &test = data.test->shape();
    if (test.kind != train.kind || test.elements() != train.elements() || test.labels != train.labels) {
      return absl::InvalidArgumentError(str_cat("a held-out sample has ", test.elements(), " elements and ",
                                                test.labels, " labels, a training sample ", train.elements(),
                                                " and ", train.labels,
                                                "; data.train and data.test must have one shape"));
    }
  }
  return data;
}

// Every member keeps this in its machine's memory, also where a device has a copy.
LastingMemory kept_on_host(const v1::TrainingSpec& spec, std::size_t elements, bool trains) {
  LastingMemory needs = lasting_memory(spec, elements,
                                       !trains                       ? Holding::kReads
                                       : spec.has_parameter_server() ? Holding::kCopies
                                                                     : Holding::kTrains);
  needs.half_weights = 0;  // the programs'
  return needs;
}

absl::Status check_host(const LastingMemory& needs, const Host& host) {
  HostRoom room{.machine = free_memory(), .address_space = free_address_space(), .members = host.members};
  if (host.free_mib_at_begin > 0) room.at_begin = std::uint64_t(host.free_mib_at_begin) << 20;
  return check_host_room(needs, room);
}

// Samples of one pass of training, as far as they are known before there is a view; else as few as can be.
std::int64_t rows_of_training(const v1::TrainingSpec& spec, const Host& host) {
  if (host.free_mib_at_begin == 0 || spec.has_parameter_server()) return 1;
  return std::max<std::int64_t>(1, pass_rows(spec, spec.global_batch_size() / host.members));
}

// Bytes of the programs that a member keeps at once in this machine's memory, for passes of so many samples;
// `evaluated` 0: there is nothing to evaluate.
absl::StatusOr<std::size_t> bytes_of_passes(const Source& source, const tensor::GraphBuilder& graph,
                                            std::int64_t trained, std::int64_t evaluated) {
  std::size_t bytes = 0;
  for (const auto& [purpose, rows] :
       {std::pair(Purpose::kTraining, trained), {Purpose::kEvaluation, evaluated}}) {
    if (rows == 0) continue;
    PL_ASSIGN_OR_RETURN(const std::size_t more,
                        tensor::program_bytes(graph, *source.device, options_of(source, purpose, rows)));
    bytes += more;
  }
  return bytes;
}

// The host's memory holds the programs, too, where the device has none of its own.
absl::Status check_host_with_passes(const v1::TrainingSpec& spec, const Source& source,
                                    const tensor::GraphBuilder& graph, const Host& host,
                                    const Workload& workload, LastingMemory needs) {
  const bool evaluates = workload.data.test != nullptr && workload.data.test->size() > 0;
  const std::int64_t trained = host.trains ? rows_of_training(spec, host) : 0;
  const std::int64_t evaluated = evaluates ? evaluation_rows(spec, workload) : 0;
  PL_ASSIGN_OR_RETURN(needs.passes, bytes_of_passes(source, graph, trained, evaluated));
  if (const absl::Status found = check_host(needs, host); found.ok()) return found;
  PL_ASSIGN_OR_RETURN(needs.least_passes, bytes_of_passes(source, graph, std::min<std::int64_t>(trained, 1),
                                                          std::min<std::int64_t>(evaluated, 1)));
  return check_host(needs, host);
}

// Tells that what lasts finds room; of a device with memory of its own also what is free there.
absl::Status add_room(const v1::TrainingSpec& spec, const Source& source, const Host& host,
                      Workload& workload) {
  PL_ASSIGN_OR_RETURN(const std::optional<tensor::MemoryRoom> room, source.device->room());
  tensor::GraphBuilder graph;
  PL_RETURN_IF_ERROR(source.model->build(graph, source.shape));
  PL_ASSIGN_OR_RETURN(const tensor::ParameterLayout layout, tensor::lay_out_parameters(graph));
  const LastingMemory needs = kept_on_host(spec, layout.elements, host.trains);
  workload.check_host = [needs, host] { return check_host(needs, host); };
  if (!room.has_value()) return check_host_with_passes(spec, source, graph, host, workload, needs);
  workload.room_at_begin = *room;
  workload.room = [device = source.device]() -> absl::StatusOr<tensor::MemoryRoom> {
    PL_RETURN_IF_ERROR(device->enter());
    PL_ASSIGN_OR_RETURN(const std::optional<tensor::MemoryRoom> now, device->room());
    return now.value_or(tensor::MemoryRoom());
  };
  workload.weight_bytes = layout.elements * sizeof(float);
  const LastingMemory weights = lasting_memory(spec, layout.elements, Holding::kReads);
  PL_RETURN_IF_ERROR(check_room(weights, {.now = *room, .free_at_begin = room->free_bytes}));
  return workload.check_host();
}

}  // namespace

OpenWorkload make_open_workload(Registry registry, Compute compute, const Host& host) {
  return [registry = std::move(registry), compute = std::move(compute),
          host](const v1::TrainingSpec& spec) -> absl::StatusOr<Workload> {
    Workload workload;
    PL_ASSIGN_OR_RETURN(workload.data, open_data(spec, registry, host.threads));
    auto source = std::make_shared<Source>();
    PL_ASSIGN_OR_RETURN(source->model, model::make_model(spec.model(), registry.models));
    source->shape = shape_of(workload.data);
    if (spec.model().has_wide_and_deep()) {
      PL_ASSIGN_OR_RETURN(workload.sparse,
                          model::WideAndDeep(spec.model().wide_and_deep()).shape(source->shape));
    }
    source->threads = host.threads;
    source->device = compute.device;
    PL_RETURN_IF_ERROR(source->device->enter());
    PL_ASSIGN_OR_RETURN(source->queue, source->device->open_queue());
    if (source->queue != nullptr) source->queue->timer().collect_into(compute.times);
    if (spec.precision() == v1::PRECISION_BF16) source->precision = tensor::Precision::kBF16;
    source->recompute_activations = spec.recompute_activations();
    workload.compile = [source](Purpose purpose, std::int64_t max_rows, const tensor::LeftRoom& leave) {
      return compile_for(*source, purpose, max_rows, leave);
    };
    workload.compile_probe = [source] { return compile_probe(*source); };
    if (!spec.encrypts_links()) workload.open_exchange = compute.open_exchange;
    workload.let_exchange_go = compute.let_exchange_go;
    workload.why_no_exchange =
        spec.encrypts_links()
            ? "the job's links are encrypted, and what goes from device to device would not be"
            : compute.why_no_exchange;
    workload.device_id = compute.device_id;
    PL_RETURN_IF_ERROR(add_room(spec, *source, host, workload));
    if (compute.make_state == nullptr) return workload;
    workload.make_state = [source, make = compute.make_state](const v1::OptimizerSpec& spec,
                                                              const tensor::ParameterLayout& layout) {
      return make(*source->device, source->queue, spec, layout);
    };
    return workload;
  };
}

}  // namespace paceline::trainer

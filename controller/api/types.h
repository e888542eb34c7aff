#pragma once

// A TrainingJob as plain values: what the user asked for (spec) and what the controller says about it
// (status).
//
// parse.h makes one from YAML or JSON, print.h writes one back, training_spec.h turns one into what members
// receive. The member initialisers here ARE the defaults; each field's meaning and range stand in fields.cc,
// and docs/trainingjob.md is made from both. Values; no threads, no errors. A job that parse.h returned
// without errors keeps every rule of docs/trainingjob.md.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "controller/api/status.h"

namespace paceline::api {

inline constexpr std::string_view kApiVersion = "paceline.dev/v1alpha1";
inline constexpr std::string_view kKind = "TrainingJob";
inline constexpr std::string_view kManager = "paceline.dev/controller";
// By spec.runPolicy.managedBy: a job that names another controller is left alone.
constexpr bool is_ours(std::string_view managed_by) {
  return managed_by.empty() || managed_by == kManager;
}

struct Metadata {
  std::string name;
  std::string ns = "default";  // metadata.namespace
  std::map<std::string, std::string> labels, annotations;
};

// ---- spec.strategy

enum class StrategyType : std::uint8_t { kAllReduce, kParameterServer };
enum class Synchronization : std::uint8_t { kSynchronous, kAsynchronous, kBoundedStaleness };
enum class Transport : std::uint8_t { kAuto, kSharedMemory, kTcp };
enum class Algorithm : std::uint8_t { kAuto, kRing, kRecursiveDoubling, kHalvingDoubling, kDirect };

enum class Encryption : std::uint8_t { kNone, kTls };

struct AllReduce {
  Transport transport = Transport::kAuto;
  Algorithm algorithm = Algorithm::kAuto;
  bool overlap = true;
  std::int64_t bucket_bytes = 1 << 20;
  std::int64_t sockets_per_peer = 2;
  double timeout_seconds = 30;
  double max_drop_rate = 0;  // 0: steps are whole
};

// What the modes are: docs/parameter-servers.md.
struct ParameterServer {
  std::optional<std::int64_t>
      gradients_per_step;         // Synchronous; absent: those of all, or all but the backups
  std::int64_t staleness = 1;     // BoundedStaleness
  double delay_compensation = 0;  // Asynchronous
  Transport transport = Transport::kAuto;
  bool overlap = true;
  std::int64_t slice_bytes = 1 << 20;
  double timeout_seconds = 30;
};

struct Strategy {
  StrategyType type = StrategyType::kAllReduce;
  Synchronization synchronization = Synchronization::kSynchronous;
  std::int64_t backup_workers = 0;  // ParameterServer, Synchronous
  Encryption encryption = Encryption::kNone;
  AllReduce all_reduce;
  ParameterServer parameter_server;
};

// ---- spec.replicaSpecs

enum class RestartPolicy : std::uint8_t { kNever, kAlways, kOnFailure, kExitCode };
enum class RestartScope : std::uint8_t { kReplica, kRole, kJob };

struct EnvVar {
  std::string name, value;
};

struct Container {
  std::string name = "trainer";
  std::string image;                       // Kubernetes only
  std::vector<std::string> command, args;  // both empty: the built-in trainer, or the image's own program
  std::vector<EnvVar> env;
  double cpu_limit = 0;    // resources.limits.cpu, in cores; 0: none
  double cpu_request = 0;  // resources.requests.cpu, likewise
};

struct ReplicaSpec {
  std::int64_t replicas = 1;
  RestartPolicy restart_policy = RestartPolicy::kNever;
  std::optional<RestartScope> restart_scope;  // absent: as restart_scope() says
  std::optional<Container> container;         // the template's: the one called "trainer", else the first
  std::size_t container_index = 0;            // its place in template.spec.containers
  std::optional<std::int64_t> termination_grace_seconds;  // the template's
  std::string pod_template;  // all of template as written, as YAML in one line; empty: none
  std::optional<std::int64_t> min_replicas, max_replicas;  // worker only; edit.h has what absent means
  std::optional<std::int64_t> standby;                     // worker only; absent: 0

  std::int64_t places() const { return replicas + standby.value_or(0); }
};

struct ReplicaSpecs {
  std::optional<ReplicaSpec> chief, worker, ps, evaluator;
};

// ---- spec.training

enum class ModelType : std::uint8_t { kMlp, kCnn, kGpt, kCustom, kWideAndDeep };
enum class Activation : std::uint8_t { kRelu, kGelu, kTanh };

enum class RowOptimizerType : std::uint8_t { kSgd, kAdagrad, kAdam, kFtrl };
enum class Eviction : std::uint8_t { kLeastRecent, kLeastFrequent };

struct RowOptimizer {
  RowOptimizerType type = RowOptimizerType::kFtrl;
  double learning_rate = 0;                           // FTRL: alpha
  double momentum = 0;                                // SGD
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  // Adam
  double adagrad_epsilon = 1e-10;                     // Adagrad, as `epsilon`
  double beta = 0.001;                                // FTRL
  double l1 = 0, l2 = 0;                              // FTRL
};

// Rows on the servers, made as they are first trained.
struct Table {
  RowOptimizer optimizer;
  std::int64_t max_rows = 0;  // over all servers; 0: no bound
  Eviction eviction = Eviction::kLeastRecent;
};

// As Cheng et al. (2016) train them; the rates are for gradients of the batch's mean.
struct Tables {
  Table wide{.optimizer = {.type = RowOptimizerType::kFtrl, .learning_rate = 0.1}};
  Table deep{.optimizer = {.type = RowOptimizerType::kAdagrad, .learning_rate = 0.05}};
};

// `type` says which fields count; the others keep their initial values.
struct Model {
  ModelType type = ModelType::kMlp;
  std::vector<std::int64_t> channels;              // cnn
  std::int64_t kernel_size = 3;                    // cnn
  std::int64_t embedding = 0;                      // wide-and-deep
  std::vector<std::int64_t> hidden;                // mlp, cnn, wide-and-deep
  Activation activation = Activation::kRelu;       // mlp, cnn, wide-and-deep
  std::int64_t classes = 0;                        // mlp, cnn
  std::int64_t layers = 0, heads = 0, width = 0;   // gpt
  std::int64_t block_size = 0;                     // gpt
  std::int64_t vocabulary_size = 256;              // gpt
  std::string name;                                // custom
  std::map<std::string, std::string> parameters;   // custom: the scalars as written
  std::vector<std::vector<std::int64_t>> crosses;  // wide-and-deep: numbers of fields
  Tables tables;                                   // wide-and-deep
};

enum class DataFormat : std::uint8_t { kIdx, kCifar10, kTokens, kText, kNpy, kCsv, kCustom, kClicks };
enum class TokenType : std::uint8_t { kUint16, kUint32 };
enum class Separator : std::uint8_t { kComma, kSemicolon, kTab };

struct DataFiles {
  std::vector<std::string> inputs, labels;  // as written: relative paths are relative to the job's file
};

// x -> (x * scale - mean) / deviation
struct Normalization {
  double scale = 1, mean = 0, deviation = 1;
};

struct Augmentation {
  bool flip = false;
  std::int64_t crop = 0;
};

struct CustomData {
  std::string name;
  std::map<std::string, std::string> parameters;
};

// Made as they are read: no files. The formula stands in docs/parameter-servers.md.
struct Clicks {
  std::int64_t samples = 0;
  std::vector<std::int64_t> vocabularies;  // values of each field
  double exponent = 1.1;                   // Zipf's
  double click_rate = 0.2;
  double signal = 1, interaction = 1;
  std::int64_t seed = 1;
};

struct Data {
  DataFormat format = DataFormat::kIdx;
  DataFiles train;
  std::optional<DataFiles> test;
  double test_fraction = 0;                   // 0: none is held out
  TokenType token_type = TokenType::kUint16;  // tokens
  std::int64_t label_column = -1;             // csv
  bool header = false;                        // csv
  Separator separator = Separator::kComma;    // csv
  std::vector<std::int64_t> shape;            // empty: as the files say
  Normalization normalize;
  Augmentation augment;
  std::int64_t prefetch = 2;
  CustomData custom;  // custom
  Clicks clicks;      // clicks
};

enum class OptimizerType : std::uint8_t { kSgd, kAdam, kAdamW, kAdagrad };
enum class ScheduleType : std::uint8_t { kConstant, kStep, kCosine };

struct Schedule {
  ScheduleType type = ScheduleType::kConstant;
  std::int64_t warmup_steps = 0;
  std::int64_t step_every = 0;  // Step
  double step_factor = 0.1;     // Step
  double final_fraction = 0;    // Cosine
  bool scale_by_workers = false;
};

struct Optimizer {
  OptimizerType type = OptimizerType::kSgd;
  double learning_rate = 0;
  double momentum = 0;                                // SGD
  bool nesterov = false;                              // SGD
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;  // Adam, AdamW
  double adagrad_epsilon = 1e-10;                     // Adagrad, as `epsilon`
  double weight_decay = 0;
  double clip_norm = 0;
  Schedule schedule;
};

// Exactly one of the three.
struct Target {
  std::optional<double> accuracy = {}, loss = {}, auc = {};
};

// At most one of every_steps, every_epochs; neither: once per epoch where there is held-out data.
struct Evaluation {
  std::optional<std::int64_t> every_steps;
  std::optional<double> every_epochs;
  std::int64_t batch_size = 500;
};

enum class Precision : std::uint8_t { kFp32, kBf16 };

struct Training {
  Model model;
  Data data;
  Optimizer optimizer;
  std::int64_t global_batch_size = 0;
  std::int64_t micro_batch_size = 0;  // 0: a member's whole share
  std::optional<std::int64_t> steps;  // exactly one of steps, epochs
  std::optional<double> epochs;
  std::optional<Target> target;
  Evaluation evaluation;
  Precision precision = Precision::kFp32;
  bool recompute_activations = false;
  std::int64_t seed = 1;
  bool deterministic = false;  // what can't be repeated to the bit is refused
};

struct Checkpoint {
  std::string location;  // a path or file:// URL, as written; empty: the run's own folder
  std::int64_t every_steps = 0;
  double every_seconds = 0;
  std::int64_t keep = 3;
};

enum class CleanPodPolicy : std::uint8_t { kRunning, kAll, kNone };

struct SchedulingPolicy {
  std::string queue, priority_class;          // empty: none
  std::optional<std::int64_t> min_available;  // all members, or absent
};

struct RunPolicy {
  bool suspend = false;
  std::optional<std::int64_t> active_deadline_seconds, ttl_seconds_after_finished;
  CleanPodPolicy clean_pod_policy = CleanPodPolicy::kRunning;
  std::int64_t backoff_limit = 6;
  std::optional<std::int64_t> restart_window_seconds;  // absent: all restarts count
  std::string managed_by;                              // empty: by this controller
  SchedulingPolicy scheduling_policy;
};

// The job's answer to a member that holds the others back (docs/stragglers.md).
enum class StragglerPolicyAction : std::uint8_t { kReport, kReplace, kIgnore, kRebalance };

struct StragglerPolicy {
  StragglerPolicyAction action = StragglerPolicyAction::kReport;
  double factor = 1.2;
  double lost_seconds = 30;
  std::int64_t max_replacements = 3;
  std::int64_t window_seconds = 3600;
  bool told_by_program =
      false;  // without training, on Kubernetes: a container beside the program hears of its steps
};

// The job's answer to a member that fails the check before the first step (docs/stragglers.md).
enum class PreflightAction : std::uint8_t { kExclude, kReport };

struct PreflightPolicy {
  PreflightAction action = PreflightAction::kExclude;
  double factor = 2;
};

struct Spec {
  Strategy strategy;
  ReplicaSpecs replica_specs;
  std::optional<Training> training;  // absent: the template's own program runs
  Checkpoint checkpoint;
  std::optional<PreflightPolicy> preflight;  // absent: nobody is checked before the first step
  StragglerPolicy stragglers;
  RunPolicy run_policy;
};

struct TrainingJob {
  Metadata metadata;
  Spec spec;
  Status status;
};

// How many train: the chief, if there is one, and the workers.
std::int64_t trainer_count(const TrainingJob& job);
// Likewise, once replicas was edited to maxReplicas, where there is one.
std::int64_t most_trainers(const TrainingJob& job);
// An edit of replicas may give the job a second one, or it has it.
bool may_have_two_trainers(const TrainingJob& job);
bool trains(Role role);

// Members begin and end together, as one attempt: those who train, and the servers of the built-in trainer.
// Evaluators, and servers of the template's own program, stand beside them.
std::int64_t member_count(const TrainingJob& job);
bool is_member(const TrainingJob& job, Role role);

// Members that wait until another one is lost, beside those.
std::int64_t standby_count(const TrainingJob& job);

// Into how many units, the samples of one gradient each, a global batch is cut.
std::int64_t units_per_step(const TrainingJob& job);

// How many of them make an update where it is synchronous: all, but for gradientsPerStep.
std::int64_t gradients_per_step(const TrainingJob& job);
const std::optional<ReplicaSpec>& replica_spec(const TrainingJob& job, Role role);

// The scope says who starts again with one of this role: it alone, all of its role, or all members. A job
// that says nothing has the first in an all-reduce of the native trainer and of pods that nobody needs
// (is_member()), and the last elsewhere.
RestartScope restart_scope(const TrainingJob& job, Role role);

// "namespace/name"
std::string job_key(const TrainingJob& job);

// The names as they stand in YAML: "Running", "AllReduce", "mlp", ...
template <typename Enum>
requires std::is_enum_v<Enum>
const char* name(Enum value);

}  // namespace paceline::api

#include "controller/api/rules.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>

#include "base/device_choice.h"
#include "base/limits.h"
#include "base/text.h"
#include "controller/api/fields.h"
#include "controller/api/scalars.h"
#include "controller/api/training_spec.h"

namespace paceline::api {

namespace {

constexpr char kTraining[] = "spec.training";
constexpr char kModel[] = "spec.training.model";
constexpr char kData[] = "spec.training.data";

std::string under(std::string_view parent, std::string_view name) {
  return str_cat(parent, ".", name);
}

bool all_clean(const Findings& f, std::initializer_list<std::string> paths) {
  return std::all_of(paths.begin(), paths.end(), [&](const std::string& path) { return f.clean(path); });
}

void warn(Findings& f, const std::string& path, std::string problem) {
  f.add(path, std::move(problem)).severity = Severity::kWarning;
}

void check_members(const TrainingJob& job, Findings& f) {
  if (!f.clean(kReplicas) || !f.has(kReplicas)) return;
  if (trainer_count(job) == 0)
    f.refuse(kReplicas, "nobody trains", "no replicas", "at least one chief or worker");
  const std::int64_t members =
      member_count(job) + standby_count(job) + most_trainers(job) - trainer_count(job);
  if (job.spec.training && members > kMaxGroupMembers)
    f.refuse(kReplicas, "more members than can be linked to one another", str_cat(members),
             str_cat("at most ", kMaxGroupMembers,
                     " of chief, worker (its maxReplicas and standby) and ps together"));
}

// The choice of an algorithm is about links; members that share memory have one way, which beats them all.
void check_algorithm(const TrainingJob& job, Findings& f) {
  const AllReduce& a = job.spec.strategy.all_reduce;
  const std::string path = "spec.strategy.allReduce.algorithm";
  if (!all_clean(f, {path, "spec.strategy.allReduce.transport"})) return;
  if (a.transport == Transport::kTcp || a.algorithm == Algorithm::kAuto || a.algorithm == Algorithm::kDirect)
    return;
  f.refuse(path, "has no effect where members share memory", name(a.algorithm),
           "with transport: TCP; else Auto or Direct");
}

// Whether another variable's value stands in for a part of it, which only the pod knows: $(NAME), where $$ is
// no begin of one.
bool has_reference(std::string_view value) {
  for (std::size_t i = 0; i + 1 < value.size(); ++i) {
    if (value[i] != '$') continue;
    const std::size_t end = value.find(')', i);
    if (value[i + 1] == '(' && end != std::string_view::npos && end > i + 2) return true;
    if (value[i + 1] == '$') ++i;
  }
  return false;
}

// The API server has no room for this rule: a job on a cluster is refused in its status.
void check_variables(const std::string& path, const Container& container, Findings& f) {
  for (std::size_t i = 0; i < container.env.size(); ++i) {
    const EnvVar& variable = container.env[i];
    const std::string_view allowed = device_rule_broken(variable.name, variable.value);
    const std::string item = str_cat(path, "[", i, "]");
    if (allowed.empty() || has_reference(variable.value) || !f.clean(item)) continue;
    f.refuse(under(item, "value"), str_cat("not a value of ", variable.name), quote(variable.value),
             std::string(allowed));
  }
}

void check_role(const char* role, const std::optional<ReplicaSpec>& spec, const Training& t, Findings& f) {
  if (!spec) return;
  const std::string path = under(kReplicas, role);
  const Container* container = spec->container ? &*spec->container : nullptr;
  const std::string inside = str_cat(path, ".template.spec.containers[", spec->container_index, "]");
  if (container != nullptr) check_variables(under(inside, "env"), *container, f);
  const bool has_command = container != nullptr && !container->command.empty();
  if (container != nullptr && !has_command && !container->args.empty()) {
    f.refuse(under(inside, "args"), "arguments without a command", "", "a command");
  }
  const bool custom = t.model.type == ModelType::kCustom || t.data.format == DataFormat::kCustom;
  const bool sees_it = std::string_view(role) != "ps";  // servers see weights, not what they are of
  if (!custom || !sees_it || has_command || spec->replicas == 0) return;
  if (!all_clean(f, {path, under(kModel, "type"), under(kData, "format")})) return;
  f.refuse(path, "a custom model or data set needs a command", "",
           "template.spec.containers[0].command: the program that registers it");
}

using Roles = std::array<std::pair<const char*, const std::optional<ReplicaSpec>*>, 4>;
Roles roles_of(const ReplicaSpecs& r) {
  return {{{"chief", &r.chief}, {"worker", &r.worker}, {"ps", &r.ps}, {"evaluator", &r.evaluator}}};
}

void check_roles(const TrainingJob& job, Findings& f) {
  for (const auto& [role, spec] : roles_of(job.spec.replica_specs))
    check_role(role, *spec, *job.spec.training, f);
}

// The template's own program runs: how it trains is not for us to say.
void check_without_training(const TrainingJob& job, Findings& f) {
  if (!f.clean("spec") || !f.has("spec")) return;
  for (const char* path : {"spec.strategy", "spec.checkpoint"}) {
    if (f.has(path)) f.refuse(path, "does not apply here", "", "only with training");
  }
  for (const auto& [role, spec] : roles_of(job.spec.replica_specs)) {
    if (!*spec || (*spec)->replicas == 0) continue;
    const std::optional<Container>& container = (*spec)->container;
    if (container && !(container->image.empty() && container->command.empty())) continue;
    f.refuse(under(kReplicas, role), "without training there is nothing to run", "",
             "template.spec.containers[0] with an image or a command; or spec.training");
  }
}

void check_batches(const TrainingJob& job, Findings& f) {
  const Training& t = *job.spec.training;
  const std::string batch = under(kTraining, "globalBatchSize"), micro = under(kTraining, "microBatchSize");
  const std::int64_t members = trainer_count(job), units = units_per_step(job);
  if (members == 0 || units <= 0 || !f.has(batch) || !all_clean(f, {batch, kReplicas, "spec.strategy"}))
    return;
  const std::int64_t share = (t.global_batch_size + units - 1) / units;
  if (t.global_batch_size < units) {
    f.refuse(batch,
             units == members ? "smaller than the number of members"
                              : "smaller than the number of gradients that make a step",
             str_cat(t.global_batch_size), str_cat(">= ", units));
    return;
  }
  if (t.global_batch_size % units != 0) {
    warn(f, batch,
         str_cat(t.global_batch_size, " samples do not divide by ", units,
                 units == members ? " members" : " gradients", ": some get ", share, ", others ", share - 1));
  }
  if (f.clean(micro) && t.micro_batch_size > share) {
    f.refuse(micro, "larger than a member's share of the batch", str_cat(t.micro_batch_size),
             str_cat("0 to ", share));
  }
}

void check_length(const TrainingJob& job, Findings& f) {
  const Training& t = *job.spec.training;
  const std::string steps = under(kTraining, "steps"), epochs = under(kTraining, "epochs");
  if (!f.has(kTraining)) return;
  if (f.has(steps) && f.has(epochs)) {
    f.refuse(epochs, "both steps and epochs are given", "", "exactly one of them");
  } else if (!f.has(steps) && !f.has(epochs)) {
    f.refuse(kTraining, "neither steps nor epochs is given", "", "exactly one of them");
  }
  const std::string warmup = under(kTraining, "optimizer.schedule.warmupSteps");
  if (t.steps && all_clean(f, {steps, warmup}) && t.optimizer.schedule.warmup_steps > *t.steps) {
    f.refuse(warmup, "longer than the training", str_cat(t.optimizer.schedule.warmup_steps),
             str_cat("at most ", *t.steps));
  }
}

void check_evaluation(const TrainingJob& job, Findings& f) {
  const Training& t = *job.spec.training;
  const std::string target = under(kTraining, "target"), evaluation = under(kTraining, "evaluation");
  if (t.target && f.clean(target)) {
    const int given = static_cast<int>(t.target->accuracy.has_value()) +
                      static_cast<int>(t.target->loss.has_value()) +
                      static_cast<int>(t.target->auc.has_value());
    if (given != 1) {
      f.refuse(target,
               given == 0 ? "none of accuracy, loss and auc is given"
                          : "more than one of accuracy, loss and auc are given",
               "", "exactly one of them");
    }
  }
  if (t.evaluation.every_steps && t.evaluation.every_epochs) {
    f.refuse(under(evaluation, "everyEpochs"), "both everySteps and everyEpochs are given", "",
             "at most one of them");
  }
  if (!f.clean(kData) || !f.has(kData)) return;
  if (t.data.test && t.data.test_fraction > 0) {
    f.refuse(under(kData, "testFraction"), "both test and testFraction are given", "", "at most one of them");
  }
  if (may_have_held_out_data(t.data)) return;
  for (const std::string& path : {target, evaluation}) {
    if (f.has(path))
      f.refuse(path, "there is no held-out data to evaluate on", "",
               "only with data.test or data.testFraction");
  }
}

// Height and width of an image sample where the job's file tells them; 0 where only the data does.
std::int64_t known_image_side(const Data& d) {
  if (d.format == DataFormat::kCifar10) return 32;
  return d.shape.size() == 3 ? std::min(d.shape[1], d.shape[2]) : 0;
}

void check_cnn(const Model& m, const Data& d, Findings& f) {
  if (m.type != ModelType::kCnn) return;
  if (!d.shape.empty() && d.shape.size() != 3) {
    f.refuse(under(kData, "shape"), "a cnn needs images", str_cat(d.shape.size(), " dimensions"),
             "[channels, height, width]");
  } else if (d.format == DataFormat::kCsv && d.shape.empty()) {
    f.refuse(kData, "a cnn needs images, and csv has only rows", "", "shape: [channels, height, width]");
  }
  const std::int64_t side = known_image_side(d);
  if (side > 0 && f.clean(under(kModel, "channels")) && (side >> m.channels.size()) == 0) {
    f.refuse(under(kModel, "channels"), "too many convolutions: each halves the image",
             str_cat(m.channels.size()), str_cat("images of ", side, " pixels leave nothing after the last"));
  }
}

enum class Input : std::uint8_t { kNumbers, kSequences, kCategories };
Input input_of(DataFormat format) {
  if (format == DataFormat::kTokens || format == DataFormat::kText) return Input::kSequences;
  return format == DataFormat::kClicks ? Input::kCategories : Input::kNumbers;
}
Input input_of(ModelType type) {
  if (type == ModelType::kGpt) return Input::kSequences;
  return type == ModelType::kWideAndDeep ? Input::kCategories : Input::kNumbers;
}
const char* formats_of(Input input) {
  switch (input) {
    case Input::kSequences:
      return "tokens, text";
    case Input::kCategories:
      return "clicks";
    case Input::kNumbers:
      break;
  }
  return "idx, cifar10, npy, csv";
}

void check_model(const TrainingJob& job, Findings& f) {
  const Model& m = job.spec.training->model;
  const Data& d = job.spec.training->data;
  const std::string type = under(kModel, "type"), format = under(kData, "format");
  if (m.type == ModelType::kGpt && all_clean(f, {type, under(kModel, "heads"), under(kModel, "width")}) &&
      f.has(under(kModel, "heads")) && m.width % m.heads != 0) {
    f.refuse(under(kModel, "heads"), "does not divide the width", str_cat(m.heads),
             str_cat("a divisor of ", m.width));
  }
  if (!f.has(type) || !f.has(format) || !all_clean(f, {type, format})) return;
  const bool free = m.type == ModelType::kCustom || d.format == DataFormat::kCustom;
  if (!free && input_of(d.format) != input_of(m.type)) {
    f.refuse(format, str_cat("the model ", name(m.type), " cannot be trained on this"), quote(name(d.format)),
             str_cat(formats_of(input_of(m.type)), ", custom"));
    return;
  }
  const std::string vocabulary = under(kModel, "vocabularySize"), classes = under(kModel, "classes");
  if (m.type == ModelType::kGpt && d.format == DataFormat::kText && f.clean(vocabulary) &&
      m.vocabulary_size < 256) {
    f.refuse(vocabulary, "text has 256 different tokens", str_cat(m.vocabulary_size), ">= 256");
  }
  const bool classifier = m.type == ModelType::kMlp || m.type == ModelType::kCnn;
  if (classifier && d.format == DataFormat::kCifar10 && f.has(classes) && f.clean(classes) &&
      m.classes < 10) {
    f.refuse(classes, "CIFAR-10 has 10 classes", str_cat(m.classes), ">= 10");
  }
  check_cnn(m, d, f);
}

void check_files(const std::string& path, const DataFiles& files, DataFormat format, Findings& f) {
  const bool labelled = format == DataFormat::kIdx || format == DataFormat::kNpy;
  if (!labelled || !f.clean(path) || files.inputs.size() == files.labels.size()) return;
  f.refuse(under(path, "labels"), "not one file of labels for each file of inputs",
           str_cat(files.labels.size()),
           str_cat(files.inputs.size(), files.inputs.size() == 1 ? " file" : " files"));
}

void check_data(const TrainingJob& job, Findings& f) {
  const Data& d = job.spec.training->data;
  if (!f.clean(under(kData, "format"))) return;
  const std::string train = under(kData, "train"), test = under(kData, "test");
  if (f.has(train)) check_files(train, d.train, d.format, f);
  if (!d.test) return;
  check_files(test, *d.test, d.format, f);
  const auto trained_on = [&](const std::string& file) {
    return std::find(d.train.inputs.begin(), d.train.inputs.end(), file) != d.train.inputs.end();
  };
  const auto shared = std::find_if(d.test->inputs.begin(), d.test->inputs.end(), trained_on);
  if (shared != d.test->inputs.end()) {
    warn(f, under(test, "inputs"), str_cat("the training set holds this file too: ", quote(*shared)));
  }
}

void check_optimizer(const TrainingJob& job, Findings& f) {
  const Optimizer& o = job.spec.training->optimizer;
  const std::string optimizer = under(kTraining, "optimizer");
  if (f.clean(optimizer) && o.nesterov && o.momentum == 0) {
    f.refuse(under(optimizer, "nesterov"), "needs momentum", "momentum 0",
             "momentum > 0, or nesterov: false");
  }
}

void check_checkpoint(const TrainingJob& job, Findings& f) {
  const std::string location = "spec.checkpoint.location";
  if (!f.has(location) || !f.clean(location)) return;
  const auto path = location_path(job.spec.checkpoint.location);
  if (!path.ok())
    f.refuse(location, "not a place that checkpoints can go to", quote(job.spec.checkpoint.location),
             "a path, or file:///path");
}

}  // namespace

void check_rules(const TrainingJob& job, Findings& findings) {
  check_members(job, findings);
  check_algorithm(job, findings);
  if (job.spec.training) {
    check_model(job, findings);
    check_data(job, findings);
    check_optimizer(job, findings);
    check_strategy(job, findings);
    check_batches(job, findings);
    check_length(job, findings);
    check_evaluation(job, findings);
    check_roles(job, findings);
    check_tables(job, findings);
  } else {
    check_without_training(job, findings);
  }
  check_checkpoint(job, findings);
  check_policies(job, findings);
}

}  // namespace paceline::api

// Each entry says what rules.cc, rules_policy.cc and edit.cc say in C++, in the same order.
//
// In CEL: roles are keys in any case; list[0] of a filtered list with all of it behind is "the one that ...,
// else the first"; [x].all(name, ...) gives x a name.

#include "controller/api/schema_rules.h"

#include "base/limits.h"
#include "base/text.h"
#include "controller/api/rules.h"

namespace paceline::api {

namespace {

// Below spec: how many train, and at most once replicas was edited; and the container of role k that does.
constexpr std::string_view kMembers =
    R"(self.replicaSpecs.map(k, k.lowerAscii() in ["chief", "worker"], self.replicaSpecs[k].replicas).sum())";
constexpr std::string_view kMostMembers =
    R"(self.replicaSpecs.map(k, k.lowerAscii() in ["chief", "worker"], )"
    "self.replicaSpecs[k].?maxReplicas.orValue(self.replicaSpecs[k].replicas)).sum()";
constexpr std::string_view kServers =
    R"(self.replicaSpecs.map(k, k.lowerAscii() == "ps", self.replicaSpecs[k].replicas).sum())";
constexpr std::string_view kBackups = "self.?strategy.?backupWorkers.orValue(0)";
constexpr std::string_view kDropRate = "self.?strategy.?allReduce.?maxDropRate.orValue(0.0)";
constexpr std::string_view kHasServers =
    R"((self.?strategy.?type.orValue("AllReduce") == "ParameterServer"))";
constexpr std::string_view kEvaluates =
    R"((has(self.training) && self.replicaSpecs.exists(k, k.lowerAscii() == "evaluator" && )"
    "self.replicaSpecs[k].replicas > 0))";
constexpr std::string_view kContainers = "self.replicaSpecs[k].template.spec.containers";

std::string trainer() {
  return str_cat("(", kContainers, R"(.filter(c, c.?name.orValue("trainer") == "trainer") + )", kContainers,
                 ")[0]");
}
std::string has_command() {
  return str_cat("size(", trainer(), ".?command.orValue([])) > 0");
}

SchemaRule evicts() {
  return {"!has(self.eviction) || self.?maxRows.orValue(0) > 0",
          "nothing is evicted without a bound; allowed: only with maxRows above 0", "eviction"};
}

struct Entry {
  const char* path;
  SchemaRule rule;
};

std::vector<Entry> rules_of_roles() {
  return {
      {"spec.replicaSpecs",
       {R"(self.all(k, k.lowerAscii() in ["chief", "worker", "ps", "evaluator"]))",
        "unknown role; allowed: chief, worker, ps, evaluator"}},
      {"spec.replicaSpecs",
       {"[self.map(k, k.lowerAscii())].all(names, names.all(a, names.exists_one(b, b == a)))",
        "a role stands here a second time, in another case"}},
      {"spec.replicaSpecs",
       {R"(self.all(k, !(k.lowerAscii() in ["chief", "evaluator"]) || self[k].replicas <= 1))",
        "replicas of the chief or the evaluator out of range; allowed: 0 to 1"}},
      {"spec.replicaSpecs",
       {R"(self.all(k, k.lowerAscii() == "worker" || (!has(self[k].minReplicas) && !has(self[k].maxReplicas) && !has(self[k].standby))))",
        "minReplicas, maxReplicas and standby do not apply here; allowed: only with the role worker"}},
      {"spec.replicaSpecs",
       {R"(self.map(k, k.lowerAscii() in ["chief", "worker"], self[k].replicas).sum() > 0)",
        "nobody trains; allowed: at least one chief or worker"}},
      {"spec",
       {str_cat(R"(!has(self.training) || self.replicaSpecs.map(k, k.lowerAscii() != "evaluator", )"
                "self.replicaSpecs[k].?maxReplicas.orValue(self.replicaSpecs[k].replicas) + "
                "self.replicaSpecs[k].?standby.orValue(0)).sum() <= ",
                kMaxGroupMembers),
        str_cat("more members than can be linked to one another; allowed: at most ", kMaxGroupMembers,
                " of chief, worker (its maxReplicas and standby) and ps together"),
        "replicaSpecs"}},
      {"spec.replicaSpecs.*",
       {"!has(self.minReplicas) || self.minReplicas <= self.replicas", "more than replicas", "minReplicas"}},
      {"spec.replicaSpecs.*",
       {"!has(self.maxReplicas) || self.maxReplicas >= self.replicas", "fewer than replicas", "maxReplicas"}},
      {"spec.replicaSpecs.*",
       {R"(!has(self.restartScope) || self.?restartPolicy.orValue("Never") != "Never")",
        "allowed: only with a restartPolicy other than Never", "restartScope"}},
      {"spec",
       {str_cat("self.replicaSpecs.all(k, !has(self.replicaSpecs[k].restartScope) || "
                R"(self.replicaSpecs[k].restartScope in (k.lowerAscii() == "evaluator" ? ["Replica"] : )"
                R"(!has(self.training) ? ["Replica", "Role", "Job"] : )",
                kHasServers, R"( ? ["Job"] : ["Replica", "Job"])))"),
        "not a restartScope that this role can have in such a job", "replicaSpecs"}},
      {"spec",
       {str_cat("self.replicaSpecs.all(k, self.replicaSpecs[k].?standby.orValue(0) == 0 || "
                "(has(self.training) && !",
                kHasServers, R"( && self.replicaSpecs[k].?restartScope.orValue("Replica") == "Replica")))"),
        "standby is for an all-reduce with restartScope Replica", "replicaSpecs"}},
      {"spec",
       {str_cat("!has(self.preflight) || (has(self.training) && !", kHasServers, ")"),
        "the check before the first step is for an all-reduce of the built-in trainer; allowed: leave it out",
        "preflight"}},
      {"spec",
       {str_cat("!has(self.preflight) || ", kMostMembers,
                " >= 2 || self.replicaSpecs.exists(k, has(self.replicaSpecs[k].minReplicas) && "
                "!has(self.replicaSpecs[k].maxReplicas))"),
        "one member has no other to be compared with; allowed: leave preflight out; or 2 that train or more",
        "preflight"}},
      {"spec",
       {str_cat(R"(self.?stragglers.?action.orValue("Report") != "Rebalance" || (has(self.training) && !)",
                kHasServers, ")"),
        "shares differ only in an all-reduce of the built-in trainer; allowed: Report, Ignore",
        "stragglers.action"}},
      {"spec.replicaSpecs.*.template.spec",
       {"size(self.containers) == 1 || self.containers.all(c, has(c.name))",
        "of several containers each needs its name", "containers"}},
  };
}

std::vector<Entry> rules_of_strategy() {
  return {
      {"spec.strategy",
       {R"(self.?synchronization.orValue("Synchronous") == "Synchronous" || )"
        R"(self.?type.orValue("AllReduce") == "ParameterServer")",
        "the members of an all-reduce wait for one another; allowed: Synchronous; the others only with type: "
        "ParameterServer",
        "synchronization"}},
      {"spec.strategy",
       {R"(!has(self.backupWorkers) || self.?synchronization.orValue("Synchronous") == "Synchronous")",
        "allowed: only with synchronization: Synchronous", "backupWorkers"}},
      {"spec.strategy",
       {"self.?backupWorkers.orValue(0) == 0 || !has(self.parameterServer) || "
        "!has(self.parameterServer.gradientsPerStep)",
        "both backupWorkers and gradientsPerStep are given; allowed: at most one of them",
        "parameterServer.gradientsPerStep"}},
      {"spec.strategy",
       {R"(self.?encryption.orValue("None") == "None" || (self.?type.orValue("AllReduce") == "ParameterServer" )"
        R"(? self.?parameterServer.?transport.orValue("Auto") : self.?allReduce.?transport.orValue("Auto")) )"
        R"(!= "SharedMemory")",
        "members that share memory send nothing over a network; allowed: None; or transport: Auto or TCP",
        "encryption"}},
      {"spec",
       {str_cat("!has(self.training) || ", kHasServers,
                R"( || !self.replicaSpecs.exists(k, k.lowerAscii() == "ps"))"),
        "the role ps allowed: only with strategy.type: ParameterServer", "replicaSpecs"}},
      {"spec",
       {str_cat("!has(self.training) || !", kHasServers, " || ", kServers, " > 0"),
        "nobody holds the weights; allowed: the role ps with at least one replica; or strategy.type: "
        "AllReduce",
        "replicaSpecs"}},
      {"spec",
       {str_cat(kBackups, " == 0 || ", kBackups, " < ", kMembers),
        "nobody's gradient would count; allowed: fewer than train", "strategy.backupWorkers"}},
      {"spec",
       {str_cat("self.?strategy.?parameterServer.?gradientsPerStep.orValue(1) <= 1 || "
                "self.?strategy.?parameterServer.?gradientsPerStep.orValue(1) <= ",
                kMembers),
        "more gradients than there are members that compute one",
        "strategy.parameterServer.gradientsPerStep"}},
      {"spec",
       {str_cat(
            "!has(self.training) || !self.training.?deterministic.orValue(false) || !", kHasServers,
            R"( || [self.?strategy.?synchronization.orValue("Synchronous")].all(mode, mode == "Synchronous" ? )",
            kBackups, " == 0 && self.?strategy.?parameterServer.?gradientsPerStep.orValue(", kMembers,
            ") == ", kMembers,
            R"( : mode == "BoundedStaleness" && self.?strategy.?parameterServer.?staleness.orValue(1) == 0))"),
        "two runs would differ; allowed: false; or Synchronous with all gradients, or BoundedStaleness with "
        "staleness: 0",
        "training.deterministic"}},
      {"spec",
       {str_cat("!has(self.training) || !self.training.?deterministic.orValue(false) || ", kDropRate,
                " == 0.0"),
        "two runs would differ; allowed: false; or allReduce.maxDropRate: 0", "training.deterministic"}},
      {"spec",
       {str_cat("!has(self.training) || ", kDropRate, " == 0.0 || ", kMembers, " == 0 || ",
                "[self.training.?microBatchSize.orValue(0)].all(m, m > 0 && m < "
                "self.training.globalBatchSize / ",
                kMembers, ")"),
        "a member whose step is one pass has nothing to leave out; allowed: 0, or a microBatchSize below "
        "each "
        "member's share",
        "strategy.allReduce.maxDropRate"}},
      {"spec",
       {str_cat(
            "!", kEvaluates,
            " || self.?checkpoint.?everySteps.orValue(0) > 0 || self.?checkpoint.?everySeconds.orValue(0.0) "
            "> 0.0"),
        "the evaluator evaluates checkpoints, and the job writes none; allowed: only with "
        "checkpoint.everySteps or checkpoint.everySeconds",
        "replicaSpecs"}},
      {"spec",
       {str_cat("!", kEvaluates,
                R"( || self.training.data.format == "custom" || has(self.training.data.test) || )"
                "self.training.data.?testFraction.orValue(0.0) > 0.0"),
        "there is no held-out data for the evaluator to evaluate on; allowed: only with data.test or "
        "data.testFraction",
        "replicaSpecs"}},
  };
}

std::vector<Entry> rules_of_training() {
  const char* training = "spec.training";
  return {
      {"spec.strategy.allReduce",
       {R"(self.?transport.orValue("Auto") == "TCP" || self.?algorithm.orValue("Auto") in ["Auto", "Direct"])",
        "has no effect where members share memory; allowed: with transport: TCP; else Auto or Direct",
        "algorithm"}},
      {"spec.training.model",
       {R"(self.type != "gpt" || !has(self.heads) || !has(self.width) || self.width % self.heads == 0)",
        "does not divide the width", "heads"}},
      {training,
       {R"(self.model.type == "custom" || self.data.format == "custom" || )"
        R"(self.data.format in (self.model.type == "gpt" ? ["tokens", "text"] : )"
        R"(self.model.type == "wide-and-deep" ? ["clicks"] : ["idx", "cifar10", "npy", "csv"]))",
        "a gpt is trained on tokens or text, wide-and-deep on clicks, an mlp or cnn on everything else",
        "data.format"}},
      {training,
       {R"(self.model.type != "gpt" || self.data.format != "text" || self.model.?vocabularySize.orValue(256) >= 256)",
        "text has 256 different tokens; allowed: >= 256", "model.vocabularySize"}},
      {training,
       {R"(!(self.model.type in ["mlp", "cnn"]) || self.data.format != "cifar10" || )"
        "self.model.?classes.orValue(10) >= 10",
        "CIFAR-10 has 10 classes; allowed: >= 10", "model.classes"}},
      {training,
       {R"(self.model.type != "cnn" || size(self.data.?shape.orValue([])) in [0, 3])",
        "a cnn needs images; allowed: [channels, height, width]", "data.shape"}},
      {training,
       {R"(self.model.type != "cnn" || self.data.format != "csv" || size(self.data.?shape.orValue([])) > 0)",
        "a cnn needs images, and csv has only rows; allowed: shape: [channels, height, width]", "data"}},
      {training,
       {R"(self.model.type != "cnn" || [self.data.format == "cifar10" ? 32 : )"
        "(size(self.data.?shape.orValue([])) != 3 ? 0 : (self.data.shape[1] < self.data.shape[2] ? "
        "self.data.shape[1] "
        ": self.data.shape[2]))].all(side, side == 0 || [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, "
        "4096, "
        "8192, 16384, 32768, 65536][size(self.model.?channels.orValue([]))] <= side)",
        "too many convolutions: each halves the image, and nothing is left after the last",
        "model.channels"}},
      {"spec.training.optimizer",
       {"!self.?nesterov.orValue(false) || self.?momentum.orValue(0.0) > 0.0",
        "needs momentum; allowed: momentum > 0, or nesterov: false", "nesterov"}},
      {"spec",
       {str_cat("!has(self.training) || ", kMembers, " - ", kBackups, " <= self.training.globalBatchSize"),
        "smaller than the number of members, or of the gradients that make a step",
        "training.globalBatchSize"}},
      {"spec",
       {str_cat("!has(self.training) || [", kMembers, " - ", kBackups,
                "].all(m, m <= 0 || self.training.?microBatchSize.orValue(0) <= "
                "(self.training.globalBatchSize + m - 1) / m)"),
        "larger than a member's share of the batch", "training.microBatchSize"}},
      {training, {"has(self.steps) != has(self.epochs)", "exactly one of steps and epochs is given"}},
      {training,
       {"!has(self.steps) || self.optimizer.?schedule.?warmupSteps.orValue(0) <= self.steps",
        "longer than the training", "optimizer.schedule.warmupSteps"}},
      {"spec.training.target",
       {"[has(self.accuracy), has(self.loss), has(self.auc)].exists_one(given, given)",
        "exactly one of accuracy, loss and auc is given"}},
      {"spec.training.evaluation",
       {"!has(self.everySteps) || !has(self.everyEpochs)",
        "both everySteps and everyEpochs are given; allowed: at most one of them", "everyEpochs"}},
      {"spec.training.data",
       {"!has(self.test) || self.?testFraction.orValue(0.0) == 0.0",
        "both test and testFraction are given; allowed: at most one of them", "testFraction"}},
      {training,
       {R"((!has(self.target) && !has(self.evaluation)) || self.data.format == "custom" || has(self.data.test) || )"
        "self.data.?testFraction.orValue(0.0) > 0.0",
        "there is no held-out data to evaluate on; target and evaluation are allowed only with data.test or "
        "data.testFraction"}},
      {"spec",
       {str_cat(
            "!has(self.training) || self.replicaSpecs.all(k, !has(self.replicaSpecs[k].template) || size(",
            trainer(), ".?args.orValue([])) == 0 || ", has_command(), ")"),
        "arguments without a command; allowed: a command", "replicaSpecs"}},
      {"spec",
       {str_cat(R"(!has(self.training) || (self.training.model.type != "custom" && )"
                R"(self.training.data.format != "custom") || self.replicaSpecs.all(k, )"
                R"(k.lowerAscii() == "ps" || self.replicaSpecs[k].replicas == 0 || )"
                "(has(self.replicaSpecs[k].template) && ",
                has_command(), "))"),
        "a custom model or data set needs a command: template.spec.containers[0].command, the program that "
        "registers "
        "it",
        "replicaSpecs"}},
      {"spec",
       {"!has(self.training) || !self.?stragglers.toldByProgram.orValue(false)",
        "allowed: only without training", "stragglers.toldByProgram"}},
      {"spec", {"has(self.training) || !has(self.strategy)", "allowed: only with training", "strategy"}},
      {"spec", {"has(self.training) || !has(self.checkpoint)", "allowed: only with training", "checkpoint"}},
      {"spec",
       {str_cat("has(self.training) || self.replicaSpecs.all(k, self.replicaSpecs[k].replicas == 0 || "
                "(has(self.replicaSpecs[k].template) && (has(",
                trainer(), ".image) || ", has_command(), ")))"),
        "without training there is nothing to run; allowed: template.spec.containers[0] with an image or a "
        "command; "
        "or spec.training",
        "replicaSpecs"}},
      {"spec.checkpoint.location",
       {R"(!self.contains("://") || (self.matches("^file:///([^%]|%[0-9a-fA-F][0-9a-fA-F])*$") && )"
        R"(!self.contains("%00")))",
        "not a place that checkpoints can go to; allowed: a path, or file:///path"}},
      {"spec",
       {str_cat("!has(self.runPolicy) || !has(self.runPolicy.schedulingPolicy) || "
                "!has(self.runPolicy.schedulingPolicy.minAvailable) || "
                "self.runPolicy.schedulingPolicy.minAvailable == ",
                kMembers, " + (has(self.training) ? ", kServers, " : 0)"),
        "members train together or not at all; allowed: the number of members",
        "runPolicy.schedulingPolicy.minAvailable"}},
  };
}

std::vector<Entry> rules_of_tables() {
  const std::string is_wide = R"((has(self.training) && self.training.model.type == "wide-and-deep"))";
  const std::string has_clicks = str_cat("(", is_wide, R"( && self.training.data.format == "clicks" && )",
                                         "has(self.training.data.clicks))");
  // `deep`: how many values n samples have at most, and with them rows of the deep table.
  const std::string fits = str_cat(
      "[self.training.data.clicks.vocabularies.map(v, v < n ? v : n).sum()].all(deep, "
      "[n * size(self.training.model.?crosses.orValue([]))].all(crosses, deep + crosses <= ",
      kMaxUnitRows,
      " && deep + crosses + deep * self.training.model.?embedding.orValue(1) <= ", kMaxUnitFloats,
      " && n * size(self.training.data.clicks.vocabularies) + crosses <= ", kMaxUnitLookups, "))");
  return {
      {"spec",
       {str_cat("!", is_wide, " || ", kHasServers),
        "its rows lie on parameter servers; allowed: only with strategy.type: ParameterServer",
        "training.model.type"}},
      {"spec.training.model.crosses.[]",
       {"self.fields.isSorted() && self.fields.all(a, self.fields.exists_one(b, b == a))",
        "allowed: each field once, in ascending order", "fields"}},
      {"spec.training",
       {R"(self.model.type != "wide-and-deep" || self.data.format != "clicks" || !has(self.data.clicks) || )"
        "!has(self.model.crosses) || self.model.crosses.all(c, c.fields.all(f, f < "
        "size(self.data.clicks.vocabularies)))",
        "names a field that the data lacks; allowed: fewer than data.clicks.vocabularies has",
        "model.crosses"}},
      {"spec.training.model.tables.wide", evicts()},
      {"spec.training.model.tables.deep", evicts()},
      {"spec.training",
       {R"(!has(self.target) || !has(self.target.auc) || self.model.type in ["wide-and-deep", "custom"])",
        "needs a model that gives one score; allowed: only with model.type: wide-and-deep, custom",
        "target.auc"}},
      {"spec",
       {str_cat("!has(self.training) || !has(self.training.target) || !has(self.training.target.auc) || ",
                R"(self.training.model.type != "custom" || )", kHasServers),
        "the members of an all-reduce evaluate a part each, and nobody ranks all samples; allowed: only with "
        "strategy.type: ParameterServer",
        "training.target.auc"}},
      {"spec",
       {str_cat("!", has_clicks, " || [", kMembers, " - ", kBackups,
                "].all(m, m <= 0 || [(self.training.globalBatchSize + m - 1) / m].all(n, ", fits, "))"),
        "a member's share of the batch may need more at once than servers give; allowed: a smaller one, or "
        "more workers",
        "training.globalBatchSize"}},
  };
}

constexpr char kForbidden[] = "FieldValueForbidden";
constexpr char kFixed[] = "fixed; make a new job";

// The field stays absent, or as it is.
SchemaRule stays(const std::string& name) {
  return {str_cat("has(self.", name, ") == has(oldSelf.", name, ") && (!has(self.", name, ") || self.", name,
                  " == oldSelf.", name, ")"),
          kFixed, name, kForbidden};
}
// The same of a field "a.b.c" whose parents may be absent too. (A value by way of ?. and orValue() would do,
// but the API server takes its comparison for unbounded.)
SchemaRule stays_below(const std::string& path, std::string_view unless = "", const char* message = kFixed) {
  const auto is_there = [&](std::string_view object) {
    std::string text = "(";
    for (std::size_t end = path.find('.');; end = path.find('.', end + 1)) {
      text += str_cat(text.size() == 1 ? "" : " && ", "has(", object, ".", path.substr(0, end), ")");
      if (end == std::string::npos) return text + ")";
    }
  };
  return {str_cat(unless, "(", is_there("self"), " == ", is_there("oldSelf"), " && (!", is_there("self"),
                  " || !", is_there("oldSelf"), " || self.", path, " == oldSelf.", path, "))"),
          message, path, kForbidden};
}

std::vector<Entry> rules_of_edits() {
  constexpr char kWhileSuspended[] = "may not be edited while the job is not suspended";
  const std::string suspended =
      "self.?runPolicy.?suspend.orValue(false) || oldSelf.?runPolicy.?suspend.orValue(false) || ";
  const auto same = [](std::string_view field) {
    return str_cat("has(self.replicaSpecs[k].", field, ") == has(oldSelf.replicaSpecs[k].", field,
                   ") && (!has(self.replicaSpecs[k].", field, ") || self.replicaSpecs[k].", field,
                   " == oldSelf.replicaSpecs[k].", field, ")");
  };
  return {
      {"spec.replicaSpecs",
       {"size(self) == size(oldSelf) && oldSelf.all(k, k in self)",
        "roles may not be added or removed; make a new job", "", kForbidden}},
      {"spec.replicaSpecs.*", stays("minReplicas")},
      {"spec.replicaSpecs.*", stays("maxReplicas")},
      {"spec.replicaSpecs.*", stays("standby")},
      {"spec.replicaSpecs.*", stays("restartScope")},
      {"spec.replicaSpecs.*",
       {R"(has(self.restartPolicy) ? self.restartPolicy == (has(oldSelf.restartPolicy) ? oldSelf.restartPolicy : )"
        R"("Never") : (!has(oldSelf.restartPolicy) || oldSelf.restartPolicy == "Never"))",
        kFixed, "restartPolicy", kForbidden}},
      {"spec.replicaSpecs.*",
       {str_cat(
            "self.replicas == oldSelf.replicas || ((has(oldSelf.minReplicas) || has(oldSelf.maxReplicas)) && "
            "self.replicas >= oldSelf.?minReplicas.orValue(1) && self.replicas <= "
            "oldSelf.?maxReplicas.orValue(",
            kMaxGroupMembers, "))"),
        "may be edited only between the worker's minReplicas and maxReplicas; without both not at all",
        "replicas", kForbidden}},
      {"spec",
       {str_cat(suspended, "oldSelf.replicaSpecs.all(k, !(k in self.replicaSpecs) || (", same("template"),
                "))"),
        str_cat("template ", kWhileSuspended), "replicaSpecs", kForbidden}},
      {"spec", stays_below("runPolicy.schedulingPolicy.queue", suspended, kWhileSuspended)},
      {"spec", stays_below("runPolicy.schedulingPolicy.priorityClass")},
      {"spec", stays_below("runPolicy.managedBy")},
  };
}

}  // namespace

void add_rules_over_fields(Schema& job) {
  for (const auto& entries :
       {rules_of_roles(), rules_of_strategy(), rules_of_training(), rules_of_tables()}) {
    for (const auto& [path, rule] : entries) job.at(path).rules.push_back(rule);
  }
}

void add_rules_of_edits(Schema& job) {
  for (const auto& [path, rule] : rules_of_edits()) job.at(path).rules.push_back(rule);
  Schema& spec = job.at("spec");
  spec.rules.push_back({"has(self.training) == has(oldSelf.training)", kFixed, "training", kForbidden});
  for (const char* name : {"strategy", "checkpoint"}) spec.rules.push_back(stays(name));
  Schema& training = spec.at("training");
  for (const Schema& field : training.properties) training.rules.push_back(stays(field.name));
}

}  // namespace paceline::api

#include "controller/api/local.h"

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "base/text.h"
#include "controller/api/document.h"
#include "controller/api/gpus.h"

namespace paceline::api {

namespace {

class Localizer {
 public:
  template <typename T>
  void reset(T& value, const T& local, const std::string& path, const char* why) {
    if (value == local) return;
    value = local;
    unused.push_back({path, why});
  }
  std::vector<Unused> unused;
};

constexpr char kOfGpus[] =
    "a local run's processes compute on a GPU where there is one that can be used; PACELINE_DEVICE chooses";

// The parts of a pod that a process of this machine is not.
class TemplateReader {
 public:
  TemplateReader(const Document& document, Localizer& l) : document_(document), l_(l) {}

  void read(const ReplicaSpec& replica, const std::string& path) {
    const Node& root = document_.nodes[document_.root];
    refuse(root, path, {"spec"}, "a local run's processes have no labels and no annotations");
    const Node* spec = field(root, "spec");
    const Node* containers = spec == nullptr ? nullptr : field(*spec, "containers");
    if (containers == nullptr) return;
    const std::string inner = str_cat(path, ".spec");
    refuse(*spec, inner, {"containers"}, "a local run is made of processes of this machine");
    for (std::size_t i = 0; i < containers->children.size(); ++i) {
      const std::string at = str_cat(inner, ".containers[", i, "]");
      const Node& container = document_.nodes[containers->children[i]];
      if (i != replica.container_index) {
        l_.unused.push_back({at, "a local run starts the trainer's container alone"});
        continue;
      }
      refuse(container, at, {"name", "command", "args", "env", "resources"},
             "a local run starts a process, without a container around it");
      if (const Node* env = field(container, "env")) read_variables(*env, str_cat(at, ".env"));
      const Node* resources = field(container, "resources");
      const Node* limits = resources == nullptr ? nullptr : field(*resources, "limits");
      const char* no_limit = "of a local run's processes only processor time is limited";
      if (resources != nullptr) refuse(*resources, str_cat(at, ".resources"), {"limits"}, no_limit);
      if (limits != nullptr) read_limits(*limits, str_cat(at, ".resources.limits"), no_limit);
    }
  }

 private:
  const Node* field(const Node& map, std::string_view name) const { return find_field(document_, map, name); }
  void refuse(const Node& map, const std::string& path, std::initializer_list<std::string_view> known,
              const char* why) {
    for (std::size_t i = 0; map.kind == NodeKind::kMap && i < map.children.size(); i += 2) {
      const std::string& name = document_.nodes[map.children[i]].text;
      if (std::ranges::find(known, name) == known.end()) l_.unused.push_back({str_cat(path, ".", name), why});
    }
  }
  void read_limits(const Node& limits, const std::string& path, const char* no_limit) {
    for (std::size_t i = 0; limits.kind == NodeKind::kMap && i < limits.children.size(); i += 2) {
      const std::string& name = document_.nodes[limits.children[i]].text;
      const bool gpu = is_gpu_limit(name, document_.nodes[limits.children[i + 1]].text);
      if (name != "cpu") l_.unused.push_back({str_cat(path, ".", name), gpu ? kOfGpus : no_limit});
    }
  }
  void read_variables(const Node& env, const std::string& path) {
    for (std::size_t i = 0; i < env.children.size(); ++i) {
      refuse(document_.nodes[env.children[i]], str_cat(path, "[", i, "]"), {"name", "value"},
             "a local run has no cluster to take a value from: the variable is empty");
    }
  }

  const Document& document_;
  Localizer& l_;
};

void visit_fields(Localizer& l, std::optional<ReplicaSpec>& replica, const std::string& path) {
  if (!replica) return;
  Document document;
  std::vector<Diagnostic> diagnostics;
  if (replica->pod_template.empty() || !read_document(replica->pod_template, document, diagnostics)) return;
  TemplateReader(document, l).read(*replica, str_cat(path, ".template"));
  replica->pod_template.clear();  // what is read of it stands in `container`
  replica->termination_grace_seconds.reset();
  if (replica->container) replica->container->cpu_request = 0;
}

}  // namespace

std::vector<Unused> make_local(TrainingJob& job) {
  Localizer l;
  ReplicaSpecs& roles = job.spec.replica_specs;
  visit_fields(l, roles.chief, "spec.replicaSpecs.chief");
  visit_fields(l, roles.worker, "spec.replicaSpecs.worker");
  visit_fields(l, roles.ps, "spec.replicaSpecs.ps");
  visit_fields(l, roles.evaluator, "spec.replicaSpecs.evaluator");
  RunPolicy& p = job.spec.run_policy;
  const RunPolicy local;
  const std::string policy = "spec.runPolicy.";
  l.reset(p.ttl_seconds_after_finished, local.ttl_seconds_after_finished, policy + "ttlSecondsAfterFinished",
          "a local run stays until `paceline delete`");
  l.reset(p.clean_pod_policy, local.clean_pod_policy, policy + "cleanPodPolicy",
          "of a local run that has ended no process is left, and its logs stay");
  l.reset(p.managed_by, local.managed_by, policy + "managedBy", "a local run is managed by this command");
  const std::string scheduling = policy + "schedulingPolicy.";
  const char* no_queue = "a local run is not scheduled: it starts at once";
  l.reset(p.scheduling_policy.queue, {}, scheduling + "queue", no_queue);
  l.reset(p.scheduling_policy.priority_class, {}, scheduling + "priorityClass", no_queue);
  l.reset(p.scheduling_policy.min_available, {}, scheduling + "minAvailable", no_queue);
  return l.unused;
}

}  // namespace paceline::api

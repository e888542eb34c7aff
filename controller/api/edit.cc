// Both jobs are flattened to path -> value by the table of fields, so that no field can be forgotten; what
// may differ is listed here.

#include "controller/api/edit.h"

#include <map>
#include <set>

#include "base/limits.h"
#include "base/text.h"
#include "controller/api/document.h"
#include "controller/api/value_visitor.h"

namespace paceline::api {

namespace {

using Values = std::map<std::string, std::string>;

class Flattener final : public ValueVisitor {
 public:
  Values take() { return std::move(values_); }

  bool begin(const Field& field, bool present) override {
    if (!present || !field.when.applies) return false;
    note(field, "a map");
    parents_.push_back(path_of(field.name));
    return true;
  }
  void end() override { parents_.pop_back(); }
  bool whole(const Field& field, std::string& value) override {
    Document document;
    std::vector<Diagnostic> diagnostics;
    if (value.empty() || !read_document(value, document, diagnostics)) return false;
    flatten(document, document.root, path_of(field.name));
    return true;
  }
  std::size_t begin_list(const Field& field, std::size_t size, CountRange) override {
    note(field, str_cat(size, " items"));
    parents_.push_back(path_of(field.name));
    return size;
  }
  bool begin_item(std::size_t index) override {
    parents_.push_back(str_cat(parents_.back(), "[", index, "]"));
    return true;
  }
  void constant(const Field&, std::string_view) override {}

 protected:
  void take(const Field& field, const std::string& value) override { note(field, value); }
  void take_list(const Field& field, const std::vector<std::string>& items) override {
    note(field, str_cat("[", joined(items), "]"));
  }
  void take_map(const Field& field, const std::vector<std::string>& pairs) override {
    note(field, str_cat("{", joined(pairs), "}"));
  }
  std::string quoted(std::string_view text) const override { return str_cat("\"", text, "\""); }

 private:
  void flatten(const Document& document, std::size_t index, const std::string& path) {
    const Node& node = document.nodes[index];
    const bool list = node.kind == NodeKind::kList, map = node.kind == NodeKind::kMap;
    values_.insert_or_assign(path, list  ? str_cat(node.children.size(), " items")
                                   : map ? "a map"
                                         : node.text);
    for (std::size_t i = 0; list && i < node.children.size(); ++i)
      flatten(document, node.children[i], str_cat(path, "[", i, "]"));
    for (std::size_t i = 0; map && i < node.children.size(); i += 2)
      flatten(document, node.children[i + 1], str_cat(path, ".", document.nodes[node.children[i]].text));
  }
  static std::string joined(const std::vector<std::string>& items) {
    std::string text;
    for (const std::string& item : items) text += str_cat(text.empty() ? "" : ", ", item);
    return text;
  }
  std::string path_of(std::string_view name) const {
    return parents_.empty() ? std::string(name) : str_cat(parents_.back(), ".", name);
  }
  void note(const Field& field, std::string value) {
    if (field.when.applies) values_.insert_or_assign(path_of(field.name), std::move(value));
  }

  Values values_;
  std::vector<std::string> parents_;
};

Values flatten(const TrainingJob& job) {
  TrainingJob copy = job;
  Flattener flattener;
  visit(flattener, copy);
  return flattener.take();
}

bool is_free(const std::string& path) {
  if (path.starts_with("spec.runPolicy.schedulingPolicy.")) return path.ends_with(".minAvailable");
  if (path.starts_with("spec.stragglers.") || path.starts_with("spec.preflight")) return true;
  return path.starts_with("spec.runPolicy.") && path != "spec.runPolicy.managedBy";
}

bool is_free_while_suspended(const std::string& path) {
  return path == "spec.runPolicy.schedulingPolicy.queue" ||
         (path.starts_with("spec.replicaSpecs.") && path.find(".template") != std::string::npos);
}

// The empty text: accepted.
std::string replicas_problem(const TrainingJob& old_job, const TrainingJob& new_job) {
  const std::int64_t now = new_job.spec.replica_specs.worker->replicas;
  if (allowed_replicas(old_job, Role::kWorker).holds(now)) return "";
  return str_cat("may not be edited from ", old_job.spec.replica_specs.worker->replicas, " to ", now,
                 "; allowed: ", allowed_replicas_text(old_job, Role::kWorker));
}

std::string value_in(const Values& values, const std::string& path) {
  const auto found = values.find(path);
  return found == values.end() ? "absent" : found->second;
}

// Whether a map or list above this path differs already: then all that is in it would only repeat that.
bool is_below(const std::string& path, const std::string& above) {
  return !above.empty() && path.size() > above.size() && path.starts_with(above) &&
         (path[above.size()] == '.' || path[above.size()] == '[');
}

}  // namespace

ReplicaRange allowed_replicas(const TrainingJob& job, Role role) {
  const ReplicaSpec& spec = *replica_spec(job, role);
  if (role != Role::kWorker) return {spec.replicas, spec.replicas};
  if (!spec.min_replicas && !spec.max_replicas) return {spec.replicas, spec.replicas};
  const std::int64_t others =
      job.spec.training ? member_count(job) - spec.replicas + standby_count(job) : 0;  // linked to it, too
  return {spec.min_replicas.value_or(1), spec.max_replicas.value_or(kMaxGroupMembers - others)};
}

std::string allowed_replicas_text(const TrainingJob& job, Role role) {
  const auto [min, max] = allowed_replicas(job, role);
  if (role != Role::kWorker) return str_cat(min, ", since only the number of workers may change");
  const ReplicaSpec& spec = *replica_spec(job, role);
  if (!spec.min_replicas && !spec.max_replicas)
    return str_cat(min, ", since the job has neither minReplicas nor maxReplicas");
  return str_cat(min, " to ", max, spec.min_replicas ? " (minReplicas, " : " (no minReplicas, ",
                 spec.max_replicas ? "maxReplicas)" : "no maxReplicas)");
}

std::vector<EditError> edit_errors(const TrainingJob& old_job, const TrainingJob& new_job) {
  const Values before = flatten(old_job), after = flatten(new_job);
  const bool suspended = old_job.spec.run_policy.suspend || new_job.spec.run_policy.suspend;
  std::set<std::string> paths;
  for (const Values* values : {&before, &after}) {
    for (const auto& [path, value] : *values) paths.insert(path);
  }
  std::vector<EditError> errors;
  for (const std::string& path : paths) {
    const bool named = path.starts_with("spec.") || path == "metadata.name" || path == "metadata.namespace";
    const std::string old_value = value_in(before, path), new_value = value_in(after, path);
    if (!named || old_value == new_value || is_free(path)) continue;
    if (suspended && is_free_while_suspended(path)) continue;
    if (!errors.empty() && is_below(path, errors.back().path)) continue;
    if (path == "spec.replicaSpecs.worker.replicas" && old_job.spec.replica_specs.worker &&
        new_job.spec.replica_specs.worker) {
      const std::string problem = replicas_problem(old_job, new_job);
      if (!problem.empty()) errors.push_back({path, problem});
      continue;
    }
    errors.push_back({path, str_cat("may not be edited from ", quote(old_value), " to ", quote(new_value),
                                    is_free_while_suspended(path) ? " while the job is not suspended"
                                                                  : "; make a new job")});
  }
  return errors;
}

}  // namespace paceline::api

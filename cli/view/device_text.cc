#include "cli/view/device_text.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/cuda_build.h"
#include "base/text.h"

namespace paceline::cli {

namespace {

using Kind = DeviceChoice::Kind;

bool trains(const api::MemberStatus& member) {
  return member.role == Role::kChief || member.role == Role::kWorker;
}

std::string how_chosen(const DeviceVariables& variables, bool with_cuda) {
  const DeviceSettings settings = parse_device_settings(variables).value();
  const DeviceChoice& choice = settings.choice;
  const std::string set = variables.device == nullptr ? "PACELINE_DEVICE is not set"
                                                      : str_cat("PACELINE_DEVICE=", variables.device);
  if (choice.kind == Kind::kCpu) return str_cat("on processors (", set, ")");
  const std::string graphs = settings.cuda_graphs ? "" : ", without CUDA graphs (PACELINE_CUDA_GRAPHS=off)";
  const char* const lacks = with_cuda ? "" : ", which this program, built without CUDA, can't use";
  if (choice.ordinal)
    return str_cat("on GPU ", *choice.ordinal, lacks, ", or the member fails (", set, ")", graphs);
  if (choice.kind == Kind::kCuda)
    return str_cat("on a GPU", lacks, ", or the member fails; of several by its number among the members (",
                   set, ")", graphs);
  if (!with_cuda) return str_cat("on processors: this program was built without CUDA (", set, ")");
  return str_cat(
      "on a GPU where there is one that can be used, of several by its number among the members, else on "
      "processors (",
      set, ")", graphs);
}

// Those whose members compute; servers do so on processors always.
std::vector<std::pair<const char*, const api::ReplicaSpec*>> roles_of(const api::TrainingJob& job) {
  const api::ReplicaSpecs& all = job.spec.replica_specs;
  std::vector<std::pair<const char*, const api::ReplicaSpec*>> roles;
  if (all.chief) roles.emplace_back("chief", &*all.chief);
  if (all.worker) roles.emplace_back("worker", &*all.worker);
  if (all.evaluator) roles.emplace_back("evaluator", &*all.evaluator);
  return roles;
}

// Some member takes a GPU where there is one, and goes on without.
bool may_take_a_gpu(const api::TrainingJob& job, const DeviceVariables& around) {
  return std::ranges::any_of(roles_of(job), [&](const auto& role) {
    const auto settings = parse_device_settings(device_variables(*role.second, around));
    return settings.ok() && settings->choice.kind == Kind::kAuto;
  });
}

}  // namespace

DeviceVariables device_variables(const api::ReplicaSpec& role, DeviceVariables around) {
  if (!role.container) return around;
  for (const api::EnvVar& variable : role.container->env) {
    if (variable.name == "PACELINE_DEVICE") around.device = variable.value.c_str();
    if (variable.name == "PACELINE_CUDA_GRAPHS") around.cuda_graphs = variable.value.c_str();
  }
  return around;
}

std::vector<std::string> device_lines(const api::TrainingJob& job, const DeviceVariables& around,
                                      bool with_cuda) {
  std::vector<std::string> lines;
  bool alike = true;
  for (const auto& [name, role] : roles_of(job)) {
    lines.push_back(how_chosen(device_variables(*role, around), with_cuda));
    alike = alike && lines.back() == lines.front();
  }
  if (alike && !lines.empty()) return {str_cat("computes ", lines.front())};
  for (std::size_t i = 0; i < lines.size(); ++i)
    lines[i] = str_cat(roles_of(job)[i].first, ": computes ", lines[i]);
  return lines;
}

std::string idle_gpu_note(const api::TrainingJob& job, const DeviceVariables& around, bool with_cuda,
                          bool gpu_is_there) {
  if (with_cuda || !gpu_is_there || !may_take_a_gpu(job, around)) return "";
  return str_cat("warning: there is a GPU that can't be used: ", without_cuda(true).message());
}

std::string computing_note(const api::TrainingJob& job, const DeviceVariables& around,
                           const std::string& device, bool gpu_is_there, const std::string& before) {
  if (device.empty()) return "";
  const std::string moved = before.empty() ? "" : str_cat("; before it was resumed, on ", before);
  if (device != "processors") return str_cat("computes on ", device, moved);
  if (gpu_is_there && may_take_a_gpu(job, around))
    return str_cat(
        "warning: computes on processors, though this machine has a GPU; the members' logs say why", moved);
  return moved.empty() ? "" : str_cat("computes on ", device, moved);
}

std::string training_kinds(const std::vector<api::MemberStatus>& members) {
  std::set<std::string> kinds;
  for (const api::MemberStatus& member : members) {
    if (!trains(member)) continue;
    if (!member.telemetry.gpu && member.step == 0) return "";
    kinds.insert(member.telemetry.gpu ? member.telemetry.gpu->name : "processors");
  }
  std::string text;
  for (const std::string& kind : kinds) text += str_cat(text.empty() ? "" : ", ", kind);
  return text;
}

std::string device_text(const std::vector<api::MemberStatus>& members) {
  std::vector<std::pair<std::string, int>> places;  // in the order of the members
  for (const api::MemberStatus& member : members) {
    if (!member.telemetry.gpu && !(trains(member) && member.step > 0)) continue;
    const std::string name = member.telemetry.gpu ? member.telemetry.gpu->name : "processors";
    const auto known = std::ranges::find(places, name, &std::pair<std::string, int>::first);
    if (known == places.end()) {
      places.emplace_back(name, 1);
    } else {
      ++known->second;
    }
  }
  if (places.size() == 1) return places[0].first;
  std::string text;
  for (const auto& [name, count] : places)
    text += str_cat(text.empty() ? "" : ", ", name, " (", count, count == 1 ? " member)" : " members)");
  return text;
}

}  // namespace paceline::cli

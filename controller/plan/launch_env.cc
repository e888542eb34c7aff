#include "controller/plan/launch_env.h"

#include <string_view>
#include <vector>

#include "base/text.h"

namespace paceline::plan {

namespace {

// A pod's host name is the same for every attempt, under the job's headless Service.
std::string host_of(const api::TrainingJob& job, Role role, int index) {
  const std::string& name = job.metadata.name;
  return str_cat(name, "-", role_name(role), "-", index, ".", name, ".", job.metadata.ns, ".svc");
}

// Names of jobs and roles are DNS labels: nothing in this JSON needs an escape.
std::string tf_config(const api::TrainingJob& job, const std::vector<Slot>& slots, const Slot& slot) {
  std::string cluster;
  for (const Role role : {Role::kChief, Role::kWorker, Role::kServer, Role::kEvaluator}) {
    std::string hosts;
    for (const Slot& each : slots) {
      if (each.role != role) continue;
      hosts +=
          str_cat(hosts.empty() ? "" : ",", "\"", host_of(job, role, each.index), ":", kTensorFlowPort, "\"");
    }
    if (hosts.empty()) continue;
    cluster += str_cat(cluster.empty() ? "" : ",", "\"", role_name(role), "\":[", hosts, "]");
  }
  return str_cat(R"({"cluster":{)", cluster, R"(},"task":{"type":")", role_name(slot.role), R"(","index":)",
                 slot.index, R"(},"environment":"cloud"})");
}

}  // namespace

std::map<std::string, std::string> launch_env(const api::TrainingJob& job, const Slot& slot) {
  const std::vector<Slot> slots = desired_slots(job);
  std::map<std::string, std::string> env{{"TF_CONFIG", tf_config(job, slots, slot)}};
  int rank = -1, world = 0;
  for (const Slot& each : slots) {
    if (!api::trains(each.role)) continue;
    if (each.role == slot.role && each.index == slot.index) rank = world;
    ++world;
  }
  if (rank < 0) return env;
  const std::string master = host_of(job, slots.front().role, slots.front().index);
  const std::string port = std::to_string(kMasterPort), size = std::to_string(world),
                    own = std::to_string(rank);
  env.insert({{"MASTER_ADDR", master},
              {"MASTER_PORT", port},
              {"WORLD_SIZE", size},
              {"RANK", own},
              {"LOCAL_RANK", "0"},
              {"PET_NNODES", size},
              {"PET_NPROC_PER_NODE", "1"},
              {"PET_NODE_RANK", own},
              {"PET_MASTER_ADDR", master},
              {"PET_MASTER_PORT", port}});
  return env;
}

}  // namespace paceline::plan

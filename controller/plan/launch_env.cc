#include "controller/plan/launch_env.h"

#include <string_view>
#include <vector>

#include "base/text.h"

namespace paceline::plan {

namespace {

constexpr const char* kThisMachine = "127.0.0.1";

// A pod's host name is the same for every attempt, under the job's headless Service.
std::string host_of(const api::TrainingJob& job, Role role, int index) {
  const std::string& name = job.metadata.name;
  return str_cat(name, "-", role_name(role), "-", index, ".", name, ".", job.metadata.ns, ".svc");
}

// Names of jobs and roles are DNS labels: nothing in this JSON needs an escape.
// On this machine each has a port of its own, behind MASTER_PORT.
std::string tf_config(const api::TrainingJob& job, const std::vector<Slot>& slots, const Slot& slot,
                      int first_port) {
  const auto address = [&](std::size_t at) {
    return first_port > 0 ? str_cat(kThisMachine, ":", first_port + 1 + static_cast<int>(at))
                          : str_cat(host_of(job, slots[at].role, slots[at].index), ":", kTensorFlowPort);
  };
  std::string cluster;
  for (const Role role : {Role::kChief, Role::kWorker, Role::kServer, Role::kEvaluator}) {
    std::string hosts;
    for (std::size_t at = 0; at < slots.size(); ++at) {
      if (slots[at].role == role) hosts += str_cat(hosts.empty() ? "" : ",", "\"", address(at), "\"");
    }
    if (hosts.empty()) continue;
    cluster += str_cat(cluster.empty() ? "" : ",", "\"", role_name(role), "\":[", hosts, "]");
  }
  return str_cat(R"({"cluster":{)", cluster, R"(},"task":{"type":")", role_name(slot.role), R"(","index":)",
                 slot.index, R"(},"environment":"cloud"})");
}

}  // namespace

std::map<std::string, std::string> launch_env(const api::TrainingJob& job, const Slot& slot, int first_port) {
  const std::vector<Slot> slots = desired_slots(job);
  std::map<std::string, std::string> env{{"TF_CONFIG", tf_config(job, slots, slot, first_port)}};
  int rank = -1, world = 0;
  for (const Slot& each : slots) {
    if (!api::trains(each.role)) continue;
    if (each.role == slot.role && each.index == slot.index) rank = world;
    ++world;
  }
  if (rank < 0) return env;
  const std::string master =
      first_port > 0 ? kThisMachine : host_of(job, slots.front().role, slots.front().index);
  const std::string port = std::to_string(first_port > 0 ? first_port : kMasterPort),
                    size = std::to_string(world), own = std::to_string(rank);
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

#pragma once

// What a pod's environment says about the member in it (docs/protocol.md, Control). Pure.

#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "base/device_choice.h"
#include "base/ids.h"
#include "base/log.h"

namespace paceline::member {

struct Environment {
  std::string coordinator;    // PACELINE_COORDINATOR: host:port, unix:/path or unix-abstract:name
  std::string job;            // PACELINE_JOB: namespace/name
  Role role = Role::kWorker;  // PACELINE_ROLE: chief, worker, ps, evaluator (any case)
  int index = 0;              // PACELINE_INDEX: 0..1023
  int slot = 0;         // PACELINE_SLOT: number among the job's members that compute; the index when not set
  std::string pod;      // PACELINE_POD
  std::string pod_uid;  // PACELINE_POD_UID
  int start = 1;        // PACELINE_START: how often this pod's process was started; 1 when not set
  int attempt = 0;      // PACELINE_ATTEMPT: of the job, when this pod was made; 0 when not set
  int incarnation = 0;  // PACELINE_INCARNATION: rises with every pod in this place; 0 when not set
  std::string token;    // PACELINE_TOKEN; never logged
  // PACELINE_AUTHORITY: certificates in PEM, of those whom the coordinator's certificate may be signed by;
  // empty when not set: the coordinator is reached without TLS
  std::string authority;
  int threads = 0;        // PACELINE_THREADS; 0 when not set: all processors
  int host_free_mib = 0;  // PACELINE_HOST_FREE_MIB: of this machine's memory, before the job; 0: not known
  int host_members = 1;   // PACELINE_HOST_MEMBERS: of the job that train on this machine
  DeviceChoice device;    // PACELINE_DEVICE: auto (when not set), cpu, cuda (by the slot), cuda:0 ... cuda:63
  bool cuda_graphs = true;               // PACELINE_CUDA_GRAPHS: on (when not set), off
  std::string address = "127.0.0.1";     // PACELINE_ADDRESS: the IP of its data links over TCP
  LogLevel log_level = LogLevel::kInfo;  // PACELINE_LOG_LEVEL: debug, info, warning, error

  std::string member_id() const;  // pod uid and start
  std::string name() const;       // "worker-2", for people
};

// INVALID_ARGUMENT, all that is wrong at once: each variable's name, what was found (never a token), what is
// allowed.
absl::StatusOr<Environment> parse_environment(const std::map<std::string, std::string>& variables);

// This process's variables that begin with PACELINE_.
std::map<std::string, std::string> process_environment();

}  // namespace paceline::member

#pragma once

// Faults as text for people: the one place for it, and nobody reads that text again. Pure.

#include <string>

#include "controller/api/fault.h"
#include "controller/cluster/cluster.h"

namespace paceline::diagnosis {

// The kind of fault that an observation shows where nothing else is known.
api::FaultKind kind_of(api::ObservationKind seen);

// "MemberKilled", "MemberFrozen", ...: the reason that a status gives.
std::string reason_of(const api::Fault& fault);

// "worker-2 (pod fashion-worker-2-0, pid 4711) was killed by signal 9 (SIGKILL), last heard of at step 120:
// evidence"
std::string message_of(const api::Fault& fault);

// "; as a consequence worker-0 exited with code 3, worker-1 lost its link to worker-2"; empty without
// victims.
std::string victims_of(const api::Fault& fault);

// "no heartbeat for 5s"
std::string text_of(const api::Observation& seen);

// "worker-1 lost its link to worker-2"
std::string text_of(const api::Victim& victim);

// "was killed by signal 9 (SIGKILL) (OOMKilled)", "could not be started: no such file". REQUIRES: it has
// ended.
std::string end_of(const cluster::Pod& pod);

}  // namespace paceline::diagnosis

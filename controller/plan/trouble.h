#pragma once

// A pod that does not start: what a job's status tells of it, and what helps. Pure.

#include <string_view>

#include "controller/api/status.h"

namespace paceline::plan {

inline constexpr char kPodNotCreated[] = "PodNotCreated";  // the cluster refuses it
inline constexpr char kCreatingPods[] = "CreatingPods";

// Why a pod of a job that goes on does not start: condition Running, with the reason and the message of
// rule_trouble(). Null: the status tells of none.
const api::Condition* pod_trouble(const api::Status& status);

// Advice for a pod with this reason, Kubernetes' word or kPodNotCreated, in a sentence without a full stop;
// empty: none is known.
std::string_view pod_advice(std::string_view reason);

}  // namespace paceline::plan

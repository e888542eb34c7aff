#pragma once

// Distinct things are distinct types. Values; no threads, no errors.

#include <compare>
#include <cstdint>
#include <limits>
#include <string>

namespace paceline {

// A job's steps, counted from 0. "Step 12 is applied" means that 13 updates are in the weights.
using Step = std::int64_t;

// The number of a membership view of one job: 1, 2, ... It never goes back, and 0 means "none yet". It has
// nothing to do with Kubernetes' metadata.generation (SpecGeneration below). Every data frame carries it.
struct Generation {
  std::uint64_t value = 0;
  auto operator<=>(const Generation&) const = default;
};
inline constexpr Generation kLastGeneration{std::numeric_limits<std::uint64_t>::max()};

// metadata.generation of a TrainingJob.
struct SpecGeneration {
  std::int64_t value = 0;
  auto operator<=>(const SpecGeneration&) const = default;
};

enum class Role : std::uint8_t { kChief = 0, kWorker = 1, kServer = 2, kEvaluator = 3 };

// "chief", "worker", "ps", "evaluator": as in the YAML, in TF_CONFIG and in pod names.
const char* role_name(Role role);

// "worker-3", as in logs, tables and lists of members.
std::string member_name(Role role, std::int64_t index);

}  // namespace paceline

#pragma once

// The rules over several fields of a job. A rule that reads a field which has an error already is silent.
// Internal to controller/api.

#include "controller/api/findings.h"
#include "controller/api/types.h"

namespace paceline::api {

// What the samples of one unit may need at once: what a server gives and takes, and what a worker looks up.
// The members refuse the same (runtime/trainer/sparse_rows.h).
inline constexpr std::int64_t kMaxUnitRows = 1 << 18;     // of one table
inline constexpr std::int64_t kMaxUnitFloats = 1 << 26;   // of both tables
inline constexpr std::int64_t kMaxUnitLookups = 1 << 28;  // values and crosses of all samples

// Paths that several rules name.
inline constexpr char kReplicas[] = "spec.replicaSpecs";
inline constexpr char kStrategyType[] = "spec.strategy.type";

void check_rules(const TrainingJob& job, Findings& findings);

// The rules of replica counts and spec.runPolicy: a part of check_rules.
void check_policies(const TrainingJob& job, Findings& findings);

// The rules of spec.strategy, of servers and of evaluators. REQUIRES: spec.training.
void check_strategy(const TrainingJob& job, Findings& findings);

// The rules of sparse tables and of models that have them, and of their metric, AUC. REQUIRES: spec.training.
void check_tables(const TrainingJob& job, Findings& findings);

}  // namespace paceline::api

#pragma once

// The sparse tables of a job: what its model has, trained and bounded as the job says. Pure.

#include <vector>

#include "proto/paceline/v1/training.pb.h"
#include "runtime/pserver/sparse/table_spec.h"

namespace paceline::trainer {

// In the model's order, the same in all members; none: the model has none. A table that
// parameter_server.tables does not name has no learning rate: pserver::sparse::check() refuses it.
std::vector<pserver::sparse::TableSpec> table_specs(const v1::TrainingSpec& spec);

}  // namespace paceline::trainer

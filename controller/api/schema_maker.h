#pragma once

// The table of fields as a structural schema, with the rules that follow from single fields. Pure; internal
// to controller/api.

#include "controller/api/schema_tree.h"

namespace paceline::api {

// Of a whole TrainingJob, without status.
Schema schema_of_fields();

// Adds to `job`, which schema_of_fields() made, a rule for each field that stands only with one value of a
// choice: model.channels only with type: cnn.
void add_conditions(Schema& job);  // schema_conditions.cc

// Whether a CEL rule can see the field's value; else dyn() tells at least whether it is there.
bool is_visible_to_rules(const Schema& schema);

}  // namespace paceline::api

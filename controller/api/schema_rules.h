#pragma once

// The rules over several fields (rules.h) and of edits (edit.h) in CEL, and the schema of status, for the API
// server. Pure; internal to controller/api.

#include "controller/api/schema_tree.h"

namespace paceline::api {

// To the schema of schema_of_fields(). Costs of rules are bounded by the lengths and counts that it sets.
void add_rules_over_fields(Schema& job);
void add_rules_of_edits(Schema& job);
Schema schema_of_status();  // schema_status.cc

}  // namespace paceline::api

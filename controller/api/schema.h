#pragma once

// The CustomResourceDefinition of TrainingJobs as YAML: crds/trainingjobs.yaml is exactly this text, and a
// test keeps it so. Made from the table of fields, so that the API server and parse.h take the same jobs:
// names, types, ranges and choices as structural schema; which field goes with which choice, rules over
// several fields (schema_rules.h), and which edits are accepted (edit.h) as CEL. Pure.
//
// What the two judge differently, and why, is a table in tests/cluster/crd_test.py.

#include <string>

namespace paceline::api {

std::string custom_resource_definition();

}  // namespace paceline::api

#pragma once

// The fields' table as documentation: docs/trainingjob.md holds its text, and a test compares them. Pure.

#include <string>
#include <string_view>

namespace paceline::api {

// Markdown: for each map of the job a heading and a table of its fields with type, default and meaning.
std::string field_reference();

// The full path of the one field that has this name ("learningRate": "spec.training.optimizer.learningRate"),
// or of the one that lies at least two maps less deep than the others; empty where there is none. Letters'
// case is ignored.
std::string path_of_field(std::string_view name);

}  // namespace paceline::api

#pragma once

// Reads the fields of a file: bytes, syntax, fields one by one, and then what must go together. Errors have
// line, column, what is allowed, and the likely meant name. Pure.

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/api/diagnostic.h"
#include "controller/api/fields.h"
#include "controller/api/findings.h"

namespace paceline::api {

struct FieldsOf {
  const char* what;                          // "configuration", for people
  const char* allowed;                       // what the whole file should be, for people
  std::function<void(FieldVisitor&)> visit;  // the fields of the outermost map
  // Called when the fields have no errors: path and problem of what does not go together; an empty problem:
  // nothing.
  std::function<std::pair<std::string, std::string>()> check;
};

// Adds what is wrong to `findings`; false: the text is no map, and nothing else can be checked.
bool read_fields(std::string_view text, const char* what, const char* allowed,
                 const std::function<void(FieldVisitor&)>& visit, Findings& findings);

// All errors at once; of a file that is no TrainingJob. `file_name` only names the file in diagnostics.
std::vector<Diagnostic> read_fields(std::string_view text, std::string_view file_name,
                                    const FieldsOf& fields);

}  // namespace paceline::api

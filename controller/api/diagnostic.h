#pragma once

// What is wrong with a job's file, where, and what to do about it. Values; no errors, no threads.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::api {

enum class Severity : std::uint8_t { kError, kWarning };

struct Diagnostic {
  Severity severity = Severity::kError;
  std::string file;        // as given to the parser
  int line = 0;            // from 1
  int column = 0;          // from 1, in bytes of the line
  std::string path;        // spec.training.model.hidden[0]; empty for the file as a whole
  std::string problem;     // "unknown field", "out of range", ...
  std::string found;       // what stands there, printable, cut to 64 bytes, and the first character of it
                           // beyond ASCII: "1e−3" with U+2212 at 10:44; may be empty
  std::string allowed;     // what may stand there; may be empty
  std::string suggestion;  // the likely meant name; may be empty
};

// path: problem: found F; allowed: A; did you mean "S"?    (what is empty is left out)
std::string message(const Diagnostic& diagnostic);

bool has_errors(const std::vector<Diagnostic>& diagnostics);

// As compilers print them, each with its line of `text` (the file's contents) and a caret under the column,
// and a last line that counts them. Nothing for no diagnostics.
//
//   job.yaml:12:7: error: spec.training.optimizer.learningRat: unknown field; did you mean "learningRate"?
//      12 |       learningRat: 0.1
//         |       ^
std::string render_diagnostics(const std::vector<Diagnostic>& diagnostics, std::string_view text);

}  // namespace paceline::api

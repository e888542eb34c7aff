#pragma once

// Text to TrainingJob: YAML, or JSON (which is YAML). Defaults are filled in, every rule of
// docs/trainingjob.md is checked, and all errors are reported at once, sorted by position. Pure: nothing is
// read but the text; thread-safe.
//
// Hostile text is refused with one diagnostic before memory is taken: every limit has its name here.

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "controller/api/diagnostic.h"
#include "controller/api/types.h"

namespace paceline::api {

inline constexpr std::size_t kMaxFileBytes = 1 << 20;
inline constexpr std::size_t kMaxNodes =
    20'000;                           // scalars, lists and maps, each alias counted with all it stands for
inline constexpr int kMaxDepth = 64;  // of lists and maps
inline constexpr std::size_t kMaxLineBytes = 64 << 10;      // bounds what the YAML scanner looks ahead
inline constexpr std::size_t kMaxTemplateBytes = 60 << 10;  // of a pod's template, written in one line
// '[', '{' and ',' anywhere in the text: the YAML scanner holds a token for each before the first is refused.
inline constexpr std::size_t kMaxFlowMarks = 40'000;
inline constexpr std::size_t kMaxDiagnostics = 100;  // the rest is counted, not listed

struct Parsed {
  std::optional<TrainingJob> job;  // present when there are no errors (there may be warnings)
  std::vector<Diagnostic> diagnostics;
};

// `file_name` only names the file in diagnostics.
Parsed parse_training_job(std::string_view text, std::string_view file_name);

}  // namespace paceline::api

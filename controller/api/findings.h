#pragma once

// What was found wrong so far, and where each field stands in the text, so that rules over several fields can
// point at them. Internal to controller/api.

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "controller/api/diagnostic.h"
#include "controller/api/document.h"

namespace paceline::api {

class Findings {
 public:
  // Remembers where the field of this path stands.
  void place(const std::string& path, Position at) { places_[path] = at; }
  bool has(const std::string& path) const { return places_.contains(path); }

  // A finding at a place, or at the field of a path (where the text lacks it, at the nearest field around
  // it).
  Diagnostic& add(Position at, std::string path, std::string problem);
  Diagnostic& add(const std::string& path, std::string problem) {
    return add(place_of(path), path, std::move(problem));
  }

  // An error: what is wrong with the field of this path, what stands there (empty: nothing to show), what
  // may.
  void refuse(const std::string& path, std::string problem, std::string found, std::string allowed);

  void add(Diagnostic diagnostic) { diagnostics_.push_back(std::move(diagnostic)); }

  // The newest. REQUIRES: add() was called.
  Diagnostic& last() { return diagnostics_.back(); }

  // Takes back what was found about this path with this problem.
  void drop(std::string_view path, std::string_view problem);

  // Whether the field of this path, with all that is in it, has no error yet: rules that read it would only
  // repeat the error.
  bool clean(std::string_view path) const;

  // All findings by position, at most kMaxDiagnostics and then one that counts the rest.
  std::vector<Diagnostic> take(std::string_view file_name);

 private:
  Position place_of(std::string_view path) const;

  std::map<std::string, Position, std::less<>> places_;
  std::vector<Diagnostic> diagnostics_;
};

}  // namespace paceline::api

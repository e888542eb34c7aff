#include "controller/api/findings.h"

#include <algorithm>
#include <tuple>

#include "base/text.h"
#include "controller/api/parse.h"

namespace paceline::api {

Diagnostic& Findings::add(Position at, std::string path, std::string problem) {
  Diagnostic& d = diagnostics_.emplace_back();
  d.line = at.line;
  d.column = at.column;
  d.path = std::move(path);
  d.problem = std::move(problem);
  return d;
}

void Findings::refuse(const std::string& path, std::string problem, std::string found, std::string allowed) {
  Diagnostic& d = add(path, std::move(problem));
  d.found = std::move(found);
  d.allowed = std::move(allowed);
}

Position Findings::place_of(std::string_view path) const {
  while (true) {
    const auto found = places_.find(path);
    if (found != places_.end()) return found->second;
    const std::size_t end = path.find_last_of(".[");
    if (end == std::string_view::npos) return {};
    path = path.substr(0, end);
  }
}

void Findings::drop(std::string_view path, std::string_view problem) {
  std::erase_if(diagnostics_, [&](const Diagnostic& d) { return d.path == path && d.problem == problem; });
}

bool Findings::clean(std::string_view path) const {
  return std::none_of(diagnostics_.begin(), diagnostics_.end(), [&](const Diagnostic& d) {
    const bool inside =
        d.path.starts_with(path) &&
        (d.path.size() == path.size() || d.path[path.size()] == '.' || d.path[path.size()] == '[');
    return inside && d.severity == Severity::kError;
  });
}

std::vector<Diagnostic> Findings::take(std::string_view file_name) {
  std::stable_sort(diagnostics_.begin(), diagnostics_.end(), [](const Diagnostic& a, const Diagnostic& b) {
    return std::tie(a.line, a.column) < std::tie(b.line, b.column);
  });
  if (diagnostics_.size() > kMaxDiagnostics) {
    const std::size_t rest = diagnostics_.size() - kMaxDiagnostics;
    diagnostics_.resize(kMaxDiagnostics);
    Diagnostic more = diagnostics_.back();
    more.path.clear();
    more.problem = str_cat("and ", rest, " more like these");
    more.found = more.allowed = more.suggestion = "";
    more.severity = Severity::kError;
    diagnostics_.push_back(std::move(more));
  }
  for (Diagnostic& d : diagnostics_) d.file = file_name;
  return std::move(diagnostics_);
}

}  // namespace paceline::api

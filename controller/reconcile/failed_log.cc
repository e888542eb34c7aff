#include "controller/reconcile/failed_log.h"

#include <algorithm>
#include <string_view>

#include "controller/diagnosis/diagnosis.h"

namespace paceline::reconcile {

namespace {

// The part of an output that fits into an error: no escape sequences, no endless lines.
std::string sanitize_lines(const std::string& log) {
  constexpr std::size_t kMaxLineBytes = 400;
  std::string text;
  std::size_t line = 0;
  for (const char c : log) {
    const auto byte = static_cast<unsigned char>(c);
    line = c == '\n' ? 0 : line + 1;
    if (line > kMaxLineBytes + 1) continue;
    if (line > kMaxLineBytes) {
      text += "...";
    } else {
      text += c != '\n' && c != '\t' && (byte < 0x20 || byte == 0x7f) ? '?' : c;
    }
  }
  while (text.ends_with('\n')) text.pop_back();
  return text;
}

// A member's own error, or the cluster's words, have this line or stand in it.
bool has_line(const api::Fault& fault, std::string_view line) {
  constexpr std::size_t kTelling = 8;  // bytes: shorter lines may be anybody's
  return std::ranges::any_of(fault.evidence, [&](const api::Observation& seen) {
    const std::string_view detail = seen.detail;
    return (!detail.empty() && line.find(detail) != line.npos) ||
           (line.size() >= kTelling && detail.find(line) != detail.npos);
  });
}

std::string without_lines_of(const api::Fault& fault, const std::string& log) {
  std::string rest;
  for (std::size_t begin = 0; begin < log.size();) {
    const std::size_t end = std::min(log.find('\n', begin), log.size() - 1) + 1;
    const std::string_view line = std::string_view(log).substr(begin, end - begin);
    if (!has_line(fault, line.substr(0, line.find_last_not_of("\r\n") + 1))) rest += line;
    begin = end;
  }
  return rest;
}

}  // namespace

bool may_have_log(const api::Fault* fault, const cluster::Pod& pod) {
  if (!pod.log_path.empty()) return true;
  if (pod.node_not_ready) return false;
  return pod.ended() || fault == nullptr || !diagnosis::fell_silent(*fault);
}

std::string lines_to_tell(const std::string& log, const api::Fault* fault) {
  return sanitize_lines(fault == nullptr ? log : without_lines_of(*fault, log));
}

}  // namespace paceline::reconcile

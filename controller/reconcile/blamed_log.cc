#include "controller/reconcile/blamed_log.h"

#include <algorithm>

namespace paceline::reconcile {

namespace {

// Of what a command printed, what fits into an error: no escape sequences, no endless lines.
std::string harmless_lines(const std::string& log) {
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

std::string without_lines_of(const std::string& log, std::string_view told, std::string_view message) {
  constexpr std::size_t kTelling = 8;  // bytes: shorter lines may be anybody's
  std::string rest;
  for (std::size_t begin = 0; begin < log.size();) {
    const std::size_t end = std::min(log.find('\n', begin), log.size() - 1) + 1;
    const std::string_view line = std::string_view(log).substr(begin, end - begin);
    const std::string_view words = line.substr(0, line.find_last_not_of("\r\n") + 1);
    const bool again = !told.empty() && line.find(told) != std::string_view::npos;
    const bool stands = words.size() >= kTelling && message.find(words) != std::string_view::npos;
    if (!again && !stands) rest += line;
    begin = end;
  }
  return rest;
}

}  // namespace

bool may_have_log(const plan::Observed& observed, const cluster::Pod& pod) {
  if (!pod.log_path.empty()) return true;
  if (pod.node_not_ready) return false;
  if (pod.ended() || !observed.report || !observed.report->culprit) return true;
  const plan::Culprit& culprit = *observed.report->culprit;
  using enum plan::CulpritKind;
  const bool silent = culprit.kind == kDead || culprit.kind == kFrozen || culprit.kind == kUnreachable;
  return !silent || culprit.exit_code || culprit.signal || culprit.role != pod.spec.role ||
         culprit.index != pod.spec.index;
}

std::string lines_to_tell(const std::string& log, std::string_view told, std::string_view message) {
  return harmless_lines(without_lines_of(log, told, message));
}

}  // namespace paceline::reconcile

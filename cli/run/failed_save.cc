#include "cli/run/failed_save.h"

#include <charconv>
#include <stop_token>
#include <system_error>

#include "base/text.h"
#include "cli/commands/run_log.h"

namespace paceline::cli {

namespace {

constexpr std::string_view kWords = "no checkpoint of step ";  // runtime/trainer: then its number, ':', why
constexpr int kLastLines = 32;

std::string last_lines(const std::string& log) {
  std::string text;
  const LogSink sink{.bytes =
                         [&text](std::string_view bytes) {
                           text += bytes;
                           return true;
                         },
                     .remark = nullptr};
  (void)read_run_log(log, {.container = "", .tail = kLastLines, .since = std::nullopt}, {}, kube::real_pause,
                     sink, std::stop_token());
  return text;
}

}  // namespace

std::string failed_save_text(const FailedSave& save) {
  const std::string own = str_cat("checkpoint of step ", save.step, ": ");
  std::string_view why = save.error;
  if (why.starts_with(own)) why.remove_prefix(own.size());
  return str_cat("step ", save.step, " could not be saved: ", why);
}

std::optional<FailedSave> failed_save_in(std::string_view log) {
  const std::size_t found = log.rfind(kWords);
  if (found == log.npos) return std::nullopt;
  const std::string_view line = log.substr(found + kWords.size());
  const std::string_view rest = line.substr(0, line.find('\n'));
  FailedSave save;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), save.step);
  const std::string_view why = rest.substr(static_cast<std::size_t>(end - rest.data()));
  if (error != std::errc() || !why.starts_with(": ")) return std::nullopt;
  save.error = why.substr(2);
  return save;
}

std::string why_passed_over_in(std::string_view log, std::string_view name) {
  const std::string words = str_cat("passed over ", name, ": ");
  const std::size_t found = log.rfind(words);
  if (found == log.npos) return "";
  const std::string_view rest = log.substr(found + words.size());
  return std::string(rest.substr(0, rest.find('\n')));
}

std::string why_passed_over(const std::string& log_folder, std::string_view path) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const auto pods = logged_pods(log_folder);
  if (!pods.ok()) return "";
  for (const kube::SlimPod& pod : *pods) {
    if (std::string why = why_passed_over_in(last_lines(pod.uid), name); !why.empty()) return why;
  }
  return "";
}

std::optional<FailedSave> logged_failed_save(const std::string& log_folder) {
  std::optional<FailedSave> latest;
  const auto pods = logged_pods(log_folder);
  if (!pods.ok()) return latest;
  for (const kube::SlimPod& pod : *pods) {
    auto save = failed_save_in(last_lines(pod.uid));
    if (save && (!latest || save->step > latest->step)) latest = std::move(save);
  }
  return latest;
}

}  // namespace paceline::cli

#pragma once

// The program's log: lines on stderr (in a pod, its log file), with time, level, and what is known about the
// writer. A Logger is a cheap value; thread-safe. Nothing pure logs. Log a thing or return it, never both.

#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace spdlog {
class logger;
}

namespace paceline {

enum class LogLevel { kDebug, kInfo, kWarning, kError };
enum class LogFormat { kText, kJson };

// What a line is about: {{"job", key}, {"reason", reason}}. Names are ours, values anybody's.
using LogFields = std::initializer_list<std::pair<std::string_view, std::string_view>>;

class Logger {
 public:
  // Writes to stderr as `2026-01-31T12:00:00.000Z info  name: message key="value"`, or as one JSON object per
  // line with time, level, logger, message, and the fields.
  static Logger to_stderr(std::string name, LogLevel level, LogFormat format = LogFormat::kText);
  // Swallows everything: for tests.
  static Logger none();

  void debug(std::string_view message, LogFields fields = {}) const;
  void info(std::string_view message, LogFields fields = {}) const;
  void warning(std::string_view message, LogFields fields = {}) const;
  void error(std::string_view message, LogFields fields = {}) const;

 private:
  Logger(std::shared_ptr<spdlog::logger> logger, LogFormat format);
  void write(LogLevel level, std::string_view message, LogFields fields) const;

  std::shared_ptr<spdlog::logger> logger_;
  LogFormat format_;
};

// What write() puts behind the time and the logger's name. Pure.
std::string text_line(std::string_view message, LogFields fields);
// The members of a JSON object, without its braces: "message":"...","job":"...". What is no UTF-8 is
// replaced.
std::string json_members(std::string_view message, LogFields fields);

}  // namespace paceline

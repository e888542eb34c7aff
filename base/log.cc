#include "base/log.h"

#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/null_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include "base/sanitize.h"

namespace paceline {

namespace {
spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return spdlog::level::debug;
    case LogLevel::kInfo:
      return spdlog::level::info;
    case LogLevel::kWarning:
      return spdlog::level::warn;
    case LogLevel::kError:
      return spdlog::level::err;
  }
  return spdlog::level::info;
}

// Of one character of at most three bytes.
void append_unicode_escape(std::string& out, std::string_view character) {
  constexpr char kDigits[] = "0123456789abcdef";
  const std::size_t bytes = character.size();
  unsigned value = static_cast<unsigned char>(character[0]) & (bytes == 1 ? 0x7f : 0xff >> (bytes + 1));
  for (const char c : character.substr(1)) value = value << 6 | (static_cast<unsigned char>(c) & 0x3f);
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kDigits[(value >> shift) & 15];
}

void append_quoted(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    const std::size_t length = utf8_bytes(text);
    const char c = text.front();
    if (length == 0) {
      out += "\xef\xbf\xbd";
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t' || is_control(text.substr(0, length))) {
      append_unicode_escape(out, text.substr(0, length));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

}  // namespace

std::string text_line(std::string_view message, LogFields fields) {
  std::string line = sanitize(message);
  for (const auto& [name, value] : fields) {
    line += ' ';
    line += name;
    line += '=';
    append_quoted(line, value);
  }
  return line;
}

std::string json_members(std::string_view message, LogFields fields) {
  std::string line = "\"message\":";
  append_quoted(line, message);
  for (const auto& [name, value] : fields) {
    line += ',';
    append_quoted(line, name);
    line += ':';
    append_quoted(line, value);
  }
  return line;
}

Logger::Logger(std::shared_ptr<spdlog::logger> logger, LogFormat format)
    : logger_(std::move(logger)), format_(format) {}

Logger Logger::to_stderr(std::string name, LogLevel level, LogFormat format) {
  auto logger =
      std::make_shared<spdlog::logger>(std::move(name), std::make_shared<spdlog::sinks::stderr_sink_mt>());
  const char* const pattern = format == LogFormat::kText
                                  ? "%Y-%m-%dT%H:%M:%S.%eZ %-7l %n: %v"
                                  : R"({"time":"%Y-%m-%dT%H:%M:%S.%eZ","level":"%l","logger":"%n",%v})";
  logger->set_formatter(std::make_unique<spdlog::pattern_formatter>(pattern, spdlog::pattern_time_type::utc));
  logger->set_level(level_of(level));
  logger->flush_on(spdlog::level::trace);
  return {std::move(logger), format};
}

Logger Logger::none() {
  auto logger = std::make_shared<spdlog::logger>("none", std::make_shared<spdlog::sinks::null_sink_mt>());
  logger->set_level(spdlog::level::off);
  return {std::move(logger), LogFormat::kText};
}

void Logger::write(LogLevel level, std::string_view message, LogFields fields) const {
  if (!logger_->should_log(level_of(level))) return;
  logger_->log(level_of(level),
               format_ == LogFormat::kText ? text_line(message, fields) : json_members(message, fields));
}

void Logger::debug(std::string_view message, LogFields fields) const {
  write(LogLevel::kDebug, message, fields);
}
void Logger::info(std::string_view message, LogFields fields) const {
  write(LogLevel::kInfo, message, fields);
}
void Logger::warning(std::string_view message, LogFields fields) const {
  write(LogLevel::kWarning, message, fields);
}
void Logger::error(std::string_view message, LogFields fields) const {
  write(LogLevel::kError, message, fields);
}

}  // namespace paceline

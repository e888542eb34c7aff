#include "controller/cluster/local/event_log.h"

#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "base/file.h"
#include "base/regular_file.h"
#include "base/status.h"

namespace paceline::cluster {

namespace {

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      result += '\\';
      result += c;
    } else if (c == '\n') {
      result += "\\n";
    } else if (byte < 0x20 || byte == 0x7f) {
      result += str_cat("\\u", absl::Hex(byte, absl::kZeroPad4));
    } else {
      result += c;
    }
  }
  return result + '"';
}

}  // namespace

std::string event_line(const Event& event, WallTime time) {
  return str_cat("{\"time\": ", quoted(format_wall_time(time)), ", \"namespace\": ", quoted(event.ns),
                 ", \"job\": ", quoted(event.job),
                 ", \"type\": ", quoted(event.warning ? "Warning" : "Normal"),
                 ", \"reason\": ", quoted(event.reason), ", \"message\": ", quoted(event.message), "}\n");
}

absl::StatusOr<EventLog> EventLog::open(const std::string& path) {
  PL_ASSIGN_OR_RETURN(RegularFile file, open_regular_file(path, O_WRONLY | O_CREAT | O_APPEND));
  return EventLog(path, std::move(file.fd));
}

absl::Status EventLog::write(const Event& event, WallTime time) const {
  const std::string line = event_line(event, time);
  const ssize_t written = ::write(file_.get(), line.data(), line.size());
  if (written < 0) return errno_status(errno, path_);
  if (static_cast<std::size_t>(written) != line.size()) {
    return absl::ResourceExhaustedError(str_cat(path_, ": an event was cut short; is the disk full?"));
  }
  return absl::OkStatus();
}

}  // namespace paceline::cluster

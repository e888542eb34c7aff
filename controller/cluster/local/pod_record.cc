#include "controller/cluster/local/pod_record.h"

#include <signal.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>

#include "base/check.h"
#include "base/hex.h"
#include "base/process_end.h"
#include "base/random.h"
#include "base/text.h"

namespace paceline::cluster {

namespace {

void set_ended(Pod& pod, PodPhase phase, std::string reason, std::string message, WallTime now) {
  pod.phase = phase;
  pod.reason = std::move(reason);
  pod.message = std::move(message);
  pod.finished = now;
}

void set_exit(Pod& pod, int code, WallTime now) {
  pod.exit_code = code;
  set_ended(pod, code == 0 ? PodPhase::kSucceeded : PodPhase::kFailed, code == 0 ? "Completed" : "Error",
            exit_text(code, {}), now);
}

void set_killed(Pod& pod, int signal, std::string_view why, WallTime now) {
  pod.signal = signal;
  set_ended(pod, PodPhase::kFailed, "Error", str_cat(exit_text({}, signal), why), now);
}

// Of a program that could not be started.
std::string_view remedy(int error) {
  switch (error) {
    case EAGAIN:
      return "raise the limit of processes (ulimit -u, or the container's pids), or use fewer members";
    case ENOMEM:
      return "this machine has no more memory for it: end other programs, or use fewer members";
    case EMFILE:
    case ENFILE:
      return "raise the limit of file descriptors (ulimit -n), or use fewer members";
    default:
      return "correct the command of the pod's template (a path, or a program in PATH that may be executed)";
  }
}

}  // namespace

std::string new_uid() {
  std::array<std::byte, 16> bytes;
  fill_random(bytes);
  bytes[6] = (bytes[6] & std::byte{0x0f}) | std::byte{0x40};  // RFC 4122, version 4
  bytes[8] = (bytes[8] & std::byte{0x3f}) | std::byte{0x80};
  std::string uid = hex(bytes);
  for (const std::size_t dash : {8, 13, 18, 23}) uid.insert(dash, 1, '-');
  return uid;
}

absl::Status check_spec(const PodSpec& spec) {
  const auto good = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
  bool ok = !spec.name.empty() && spec.name.size() <= kMaxNameBytes;
  for (const char c : spec.name) ok = ok && good(c);
  if (!ok) return absl::InvalidArgumentError(str_cat("pod '", spec.name, "': the name must be a DNS label"));
  if (spec.command.empty() || spec.command[0].empty()) {
    return absl::InvalidArgumentError(str_cat("pod ", spec.name, ": it has no command"));
  }
  return absl::OkStatus();
}

void take_notice(Pod& pod, const Notice& notice, WallTime now) {
  if (pod.ended()) return;
  switch (notice.kind) {
    case NoticeKind::kGroup:
      pod.pid = notice.value;
      return;
    case NoticeKind::kStarted:
      pod.pid = notice.value;
      pod.phase = PodPhase::kRunning;
      pod.started = now;
      return;
    case NoticeKind::kStartError:
      pod.pid = 0;
      set_ended(pod, PodPhase::kFailed, "StartError",
                str_cat("'", pod.spec.command[0], "' can't be started: ", std::strerror(notice.value), "; ",
                        remedy(notice.value)),
                now);
      return;
    case NoticeKind::kOtherVersion:
      set_ended(
          pod, PodPhase::kFailed, "StartError",
          "paceline-pod and paceline are of different versions; install Paceline whole, or build all of "
          "it with scripts/build release",
          now);
      return;
    case NoticeKind::kEnded:
      if (notice.by_signal != 0) {
        set_killed(pod, notice.value, "", now);
      } else {
        set_exit(pod, notice.value, now);
      }
      return;
  }
}

void set_oom_killed(Pod& pod) {
  pod.reason = "OOMKilled";
  pod.message.clear();
}

void set_supervisor_killed(Pod& pod, WallTime now) {
  set_killed(pod, SIGKILL, ", because its supervisor (paceline-pod) was killed", now);
}

}  // namespace paceline::cluster

#include "controller/bin/ask_ready.h"

#include <string>

#include "base/text.h"
#include "controller/cluster/kube/json.h"

namespace paceline::controller {

namespace {

constexpr int kOk = 200;
constexpr std::size_t kMaxAnswerBytes = 64u << 10;
constexpr std::size_t kMaxShownBytes = 500;

}  // namespace

absl::Status ask_ready(kube::Transport& transport, const Clock& clock, const kube::Pause& pause) {
  const kube::Request request{
      .path = "/readyz", .timeout = kReadyTimeout, .max_response_bytes = kMaxAnswerBytes};
  const Deadline deadline = Deadline::after(clock.now(), kReadyPatience);
  std::string last;
  do {
    const absl::StatusOr<kube::Response> response = transport.call(request);
    if (response.ok() && response->status == kOk) return absl::OkStatus();
    last = response.ok() ? str_cat("it answers ", response->status, ": ",
                                   kube::sanitize_line(response->body, kMaxShownBytes))
                         : std::string(response.status().message());
  } while (!deadline.expired(clock.now()) && pause(kReadyPause, {}));
  return absl::UnavailableError(
      str_cat("the controller is not ready after ", format_duration(kReadyPatience), ": ", last));
}

}  // namespace paceline::controller

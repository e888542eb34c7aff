#include "controller/jobs/pod_log.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/text.h"
#include "controller/jobs/log_lines.h"

namespace paceline::jobs {

namespace {

using kube::SlimPod;

constexpr Duration kFirstWait = std::chrono::milliseconds(500);
constexpr Duration kLongestWait = std::chrono::seconds(10);

class PodLog {
 public:
  PodLog(KubeJobs& jobs, SlimPod pod, const LogRequest& request, const LogSink& sink, std::stop_token stop)
      : jobs_(jobs), pod_(std::move(pod)), request_(request), sink_(sink), stop_(std::move(stop)) {}

  absl::Status read_once() { return plain(stream(options(), sink_.bytes)); }

  absl::Status follow(const kube::Pause& pause) {
    const absl::Status status = read_to_end(pause);
    std::string rest;
    lines_.finish(rest);
    if (!rest.empty()) sink_.bytes(rest);
    return status;
  }

 private:
  enum class Fate : std::uint8_t { kLives, kEnded, kGone };

  absl::Status read_to_end(const kube::Pause& pause) {
    for (Duration wait = kFirstWait;;) {
      bool any = false;
      const absl::Status status = read_on(any);
      if (!read_ || stop_.stop_requested()) return absl::OkStatus();
      const bool knew = !pod_.failed_init.empty();
      const Fate fate = look();
      if (request_.container.empty() && !knew && !pod_.failed_init.empty()) continue;  // its log, then
      const bool settled = status.ok() || absl::IsInvalidArgument(status);  // a container that waits is 400
      if (fate == Fate::kGone || (fate == Fate::kEnded && settled)) return absl::OkStatus();
      if (absl::IsPermissionDenied(status)) return plain(status);
      if (!settled && !std::exchange(told_, true))
        sink_.remark(str_cat(member_name(pod_.role, pod_.index),
                             ": its log broke off, and is read again: ", status.message()));
      if (any) wait = kFirstWait;
      if (!pause(wait, stop_)) return absl::OkStatus();
      wait = std::min(2 * wait, kLongestWait);
      lines_.restart();
    }
  }

  // The trainer has no log where an init container failed.
  kube::LogOptions options() const {
    const std::string& usual = pod_.failed_init.empty() ? pod_.trainer : pod_.failed_init;
    return {.container = request_.container.empty() ? usual : request_.container,
            .lines = request_.tail,
            .since = request_.since,
            .from = std::nullopt,
            .follow = request_.follow};
  }

  absl::Status stream(const kube::LogOptions& options,
                      const std::function<bool(std::string_view)>& on_bytes) {
    return jobs_.api().stream_log(ns(), name(), options, on_bytes, stop_);
  }

  absl::Status read_on(bool& any) {
    kube::LogOptions wanted = options();
    wanted.timestamps = true;
    if (lines_.from()) {
      wanted.lines.reset();
      wanted.since.reset();
      wanted.from = lines_.from();
    }
    return stream(wanted, [&](std::string_view bytes) {
      std::string text;
      lines_.feed(bytes, text);
      any = any || !text.empty();
      return read_ = sink_.bytes(text);
    });
  }

  Fate look() {
    const auto object = jobs_.api().get(kube::kPods, ns(), name());
    if (absl::IsNotFound(object.status())) return Fate::kGone;
    if (!object.ok()) return Fate::kLives;  // not known
    const auto pod = kube::slim_pod(*object);
    if (!pod || pod->uid != pod_.uid) return Fate::kGone;
    pod_.failed_init = pod->failed_init;
    const bool ended =
        pod->phase == cluster::PodPhase::kSucceeded || pod->phase == cluster::PodPhase::kFailed;
    return ended ? Fate::kEnded : Fate::kLives;
  }

  absl::Status plain(const absl::Status& status) const {
    return jobs_.plain(status, {.what = str_cat("read the log of pod ", pod_.key),
                                .verb = "get",
                                .resource = kube::kPods,
                                .subresource = "log",
                                .ns = ns()});
  }
  std::string ns() const { return pod_.key.substr(0, pod_.key.find('/')); }
  std::string name() const { return pod_.key.substr(pod_.key.find('/') + 1); }

  KubeJobs& jobs_;
  SlimPod pod_;
  const LogRequest& request_;
  const LogSink& sink_;
  const std::stop_token stop_;
  LogLines lines_;
  bool read_ = true;  // by somebody
  bool told_ = false;
};

}  // namespace

absl::Status read_pod_log(KubeJobs& jobs, const kube::Pause& pause, const kube::SlimPod& pod,
                          const LogRequest& request, const LogSink& sink, std::stop_token stop) {
  PodLog log(jobs, pod, request, sink, std::move(stop));
  return request.follow ? log.follow(pause) : log.read_once();
}

}  // namespace paceline::jobs

// logs: each pod's log by a stream of its own. Following, a thread for each pod reads, and again where the
// connection broke off; this thread looks for new pods (another attempt) and for the job's end.

#include <algorithm>
#include <list>
#include <mutex>
#include <set>
#include <thread>

#include "base/status.h"
#include "cli/cluster/call.h"
#include "cli/cluster/job_view.h"
#include "cli/cluster/log_lines.h"
#include "cli/cluster/names.h"
#include "cli/view/log_printer.h"
#include "controller/cluster/kube/api_error.h"

namespace paceline::cli {

namespace {

using kube::Json;
using kube::SlimPod;

constexpr Duration kLookAgain = std::chrono::seconds(2);  // for new pods, and the job's end
constexpr Duration kFirstWait = std::chrono::milliseconds(500);
constexpr Duration kLongestWait = std::chrono::seconds(10);

std::string pod_name_of(const SlimPod& pod) {
  return pod.key.substr(pod.key.find('/') + 1);
}

// The pods that are asked for: of the present attempt, or of the one before. INVALID_ARGUMENT: no such
// member.
absl::StatusOr<std::vector<SlimPod>> chosen(const std::vector<SlimPod>& all, const LogsOptions& options) {
  for (const SlimPod& pod : all) {
    if (pod_name_of(pod) == options.member) return std::vector{pod};
  }
  PL_ASSIGN_OR_RETURN(const MemberPattern pattern, member_pattern(options.member));
  std::vector<SlimPod> present = present_pods(all), result;
  for (const SlimPod& now : present) {
    if (!pattern.matches(now.role, now.index)) continue;
    if (!options.previous) {
      result.push_back(now);
      continue;
    }
    std::vector<SlimPod> earlier;
    std::ranges::copy_if(all, std::back_inserter(earlier), [&](const SlimPod& pod) {
      return pod.role == now.role && pod.index == now.index && pod.attempt < now.attempt;
    });
    if (!earlier.empty()) result.push_back(*std::ranges::max_element(earlier, {}, &SlimPod::attempt));
  }
  return result;
}

// Members that the job has, or had, of those that are asked for, and whose pods are gone.
std::string members_without_pod(const JobView& job, const std::vector<SlimPod>& present,
                                const MemberPattern& pattern) {
  std::string gone;
  for (const api::MemberStatus& member : job.status.members) {
    const int index = static_cast<int>(member.index);
    if (!pattern.matches(member.role, index)) continue;
    const auto is_its = [&](const SlimPod& pod) { return pod.role == member.role && pod.index == index; };
    if (std::ranges::none_of(present, is_its))
      gone += str_cat(gone.empty() ? "" : ", ", member_name(member.role, index));
  }
  return gone;
}

absl::Status nothing_to_read(const JobView& job, const std::vector<SlimPod>& all,
                             const LogsOptions& options) {
  const std::vector<SlimPod> present = present_pods(all);
  std::string members;
  for (const SlimPod& pod : present)
    members += str_cat(members.empty() ? "" : ", ", member_name(pod.role, pod.index));
  const std::string has = members.empty() ? "" : str_cat("; it has: ", members);
  PL_ASSIGN_OR_RETURN(const MemberPattern pattern, member_pattern(options.member));
  const std::string gone = members_without_pod(job, present, pattern);
  if (!gone.empty() && !options.previous)
    return absl::NotFoundError(str_cat("job \"", job.name, "\" has no pod any more of ", gone,
                                       ", and a log goes with its pod", has));
  if (members.empty()) return absl::NotFoundError(str_cat("job \"", job.name, "\" has no pods"));
  if (options.previous)
    return absl::NotFoundError(
        str_cat("job \"", job.name, "\" has no pods of an earlier attempt any more", has));
  return absl::NotFoundError(str_cat("job \"", job.name, "\" has no member \"", options.member, "\"", has));
}

// Prints from several threads.
class Output {
 public:
  Output(Call& call, bool terminal, bool prefix) : call_(call), printer_(call.out, terminal, prefix) {}
  void feed(LogSource& source, std::string_view bytes) {
    const std::lock_guard lock(mutex_);
    printer_.feed(source, bytes);
    call_.out.flush();
  }
  void end(LogSource& source) {
    const std::lock_guard lock(mutex_);
    printer_.end(source);
    call_.out.flush();
  }
  void note(const std::string& text) {
    const std::lock_guard lock(mutex_);
    call_.err << call_.program << ": " << text << "\n" << std::flush;
  }
  // False: nobody reads any more.
  bool open() {
    const std::lock_guard lock(mutex_);
    return static_cast<bool>(call_.out);
  }

 private:
  Call& call_;
  std::mutex mutex_;
  LogPrinter printer_;
};

kube::LogOptions first_request(const SlimPod& pod, const LogsOptions& options) {
  kube::LogOptions request;
  // Where an init container failed the trainer has no log.
  const std::string& usual = pod.failed_init.empty() ? pod.trainer : pod.failed_init;
  request.container = options.container.empty() ? usual : options.container;
  request.lines = options.tail;
  request.since = options.since;
  request.follow = options.follow;
  return request;
}

Asked asked_for(const std::string& ns, const SlimPod& pod) {
  return {.what = str_cat("read the log of pod ", ns, "/", pod_name_of(pod)),
          .verb = "get",
          .resource = kube::kPods,
          .subresource = "log",
          .ns = ns};
}

absl::Status print_whole(Call& call, Output& output, const SlimPod& pod, const LogsOptions& options) {
  LogSource source{.id = pod.key, .member = member_name(pod.role, pod.index)};
  const auto on_bytes = [&](std::string_view bytes) {
    output.feed(source, bytes);
    return output.open();
  };
  const absl::Status status = call.client->api().stream_log(call.ns, pod_name_of(pod),
                                                            first_request(pod, options), on_bytes, call.stop);
  output.end(source);
  return call.client->plain(status, asked_for(call.ns, pod));
}

// One pod's log, until it ends.
class Follower {
 public:
  Follower(Call& call, Output& output, SlimPod pod, const LogsOptions& options, std::stop_token stop)
      : call_(call), output_(output), pod_(std::move(pod)), options_(options), stop_(std::move(stop)) {
    source_.id = pod_.key;
    source_.member = member_name(pod_.role, pod_.index);
  }

  void run() {
    Duration wait = kFirstWait;
    while (!stop_.stop_requested() && output_.open()) {
      bool any = false;
      const absl::Status status = read(any);
      const bool knew = !pod_.failed_init.empty();
      const Fate fate = look();
      if (options_.container.empty() && !knew && !pod_.failed_init.empty()) continue;  // its log, then
      if (fate == Fate::kGone || (fate == Fate::kEnded && (status.ok() || absl::IsInvalidArgument(status))))
        break;
      if (absl::IsPermissionDenied(status)) {
        output_.note(std::string(call_.client->plain(status, asked_for(call_.ns, pod_)).message()));
        break;
      }
      if (any) wait = kFirstWait;
      if (stop_.stop_requested()) break;
      if (!status.ok() && !absl::IsInvalidArgument(status) && !told_) {  // a container that waits is 400
        output_.note(str_cat(source_.member, ": its log broke off, and is read again: ", status.message()));
        told_ = true;
      }
      if (!call_.pause(wait, stop_)) break;
      wait = std::min(2 * wait, kLongestWait);
      lines_.restart();
    }
    std::string rest;
    lines_.finish(rest);
    if (!rest.empty()) output_.feed(source_, rest);
    output_.end(source_);
  }

 private:
  enum class Fate : std::uint8_t { kLives, kEnded, kGone };

  absl::Status read(bool& any) {
    kube::LogOptions request = first_request(pod_, options_);
    request.timestamps = true;
    if (lines_.from()) {
      request.lines.reset();
      request.since.reset();
      request.from = lines_.from();
    }
    const auto on_bytes = [&](std::string_view bytes) {
      std::string text;
      lines_.feed(bytes, text);
      any = any || !text.empty();
      if (!text.empty()) output_.feed(source_, text);
      return output_.open();
    };
    return call_.client->api().stream_log(call_.ns, pod_name_of(pod_), request, on_bytes, stop_);
  }

  Fate look() {
    const auto object = call_.client->api().get(kube::kPods, call_.ns, pod_name_of(pod_));
    if (absl::IsNotFound(object.status())) return Fate::kGone;
    if (!object.ok()) return Fate::kLives;  // not known
    const auto pod = kube::slim_pod(*object);
    if (!pod || pod->uid != pod_.uid) return Fate::kGone;
    pod_.failed_init = pod->failed_init;
    const bool ended =
        pod->phase == cluster::PodPhase::kSucceeded || pod->phase == cluster::PodPhase::kFailed;
    return ended ? Fate::kEnded : Fate::kLives;
  }

  Call& call_;
  Output& output_;
  SlimPod pod_;
  const LogsOptions& options_;
  const std::stop_token stop_;
  LogSource source_;
  LogLines lines_;
  bool told_ = false;
};

absl::Status follow(Call& call, Output& output, const std::string& job, const std::string& uid,
                    const LogsOptions& options) {
  std::stop_source enough;  // asked to end, or nobody reads
  const std::stop_callback link(call.stop, [&] { enough.request_stop(); });
  std::set<std::string> known;  // uids
  std::list<std::jthread> threads;
  for (;;) {
    const auto object = call.jobs.job(call.ns, job);
    const auto pods =
        object.ok() ? call.jobs.pods(call.ns, job) : absl::StatusOr<std::vector<SlimPod>>(object.status());
    const auto wanted = pods.ok() ? chosen(*pods, options) : pods;
    const bool refused =
        absl::IsPermissionDenied(wanted.status()) || absl::IsUnauthenticated(wanted.status());
    if (threads.empty() && refused) return wanted.status();
    if (threads.empty() && wanted.ok() && wanted->size() > kMaxFollowed) {
      return absl::ResourceExhaustedError(str_cat("job \"", job, "\" has more than ", kMaxFollowed,
                                                  " logs to follow; name a member or a role"));
    }
    for (const SlimPod& pod : wanted.ok() ? *wanted : std::vector<SlimPod>()) {
      if (threads.size() >= kMaxFollowed || !known.insert(pod.uid).second) continue;
      threads.emplace_back([&call, &output, pod, &options, stop = enough.get_token()] {
        Follower(call, output, pod, options, stop).run();
      });
    }
    const bool gone = absl::IsNotFound(object.status()) || (object.ok() && read_job(*object).uid != uid);
    const api::Phase phase = object.ok() ? read_job(*object).status.phase : api::Phase::kRunning;
    if (gone || phase == api::Phase::kSucceeded || phase == api::Phase::kFailed) break;
    if (output.open() && call.pause(kLookAgain, enough.get_token())) continue;
    enough.request_stop();
    break;
  }
  threads.clear();  // joins
  return call.stop.stop_requested() ? absl::CancelledError("stopped") : absl::OkStatus();
}

}  // namespace

absl::Status job_logs(Call& call, const LogsOptions& options) {
  PL_ASSIGN_OR_RETURN(const Json object, call.jobs.choose(call.ns, options.name));
  const JobView job = read_job(object);
  PL_ASSIGN_OR_RETURN(const std::vector<SlimPod> all, call.jobs.pods(call.ns, job.name));
  PL_ASSIGN_OR_RETURN(const std::vector<SlimPod> pods, chosen(all, options));
  const bool ended = job.status.phase == api::Phase::kSucceeded || job.status.phase == api::Phase::kFailed;
  if (pods.empty() && (ended || !options.follow)) return nothing_to_read(job, all, options);
  const bool one = options.member.find_first_of("/-") != std::string::npos;
  Output output(call, options.to_terminal, !one);
  if (options.follow) return follow(call, output, job.name, job.uid, options);
  absl::Status first;
  for (const SlimPod& pod : pods) {
    const absl::Status status = print_whole(call, output, pod, options);
    if (!status.ok() && pods.size() > 1) output.note(std::string(status.message()));
    if (absl::IsCancelled(status)) return status;
    first.Update(status);
  }
  if (first.ok() || pods.size() == 1) return first;
  return absl::Status(first.code(), "not all logs could be read");
}

}  // namespace paceline::cli

// logs: each pod's log by a reader of its own. Following, each reads in a thread; this thread looks for new
// pods (another attempt) and for the job's end.

#include <algorithm>
#include <atomic>
#include <list>
#include <mutex>
#include <set>
#include <thread>

#include "base/status.h"
#include "cli/cluster/call.h"
#include "cli/cluster/job_view.h"
#include "cli/cluster/names.h"
#include "cli/view/log_printer.h"

namespace paceline::cli {

namespace {

using kube::Json;
using kube::SlimPod;

// The pods that are asked for: of the present attempt, or of the one before. INVALID_ARGUMENT: no such
// member.
absl::StatusOr<std::vector<SlimPod>> chosen(const JobView& job, const std::vector<SlimPod>& all,
                                            const LogsOptions& options) {
  for (const SlimPod& pod : all) {
    if (pod.name() == options.member) return std::vector{pod};
  }
  PL_ASSIGN_OR_RETURN(const MemberPattern pattern, member_pattern(options.member));
  std::vector<SlimPod> present = present_pods(all, job.status), result;
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
  const std::vector<SlimPod> present = present_pods(all, job.status);
  std::string members;
  for (const SlimPod& pod : present)
    members += str_cat(members.empty() ? "" : ", ", member_name(pod.role, pod.index));
  const std::string has = members.empty() ? "" : str_cat("; it has: ", members);
  PL_ASSIGN_OR_RETURN(const MemberPattern pattern, member_pattern(options.member));
  const std::string gone = members_without_pod(job, present, pattern);
  if (!gone.empty() && !options.previous)
    return absl::NotFoundError(
        str_cat("\"", job.name, "\" has no log any more of ", gone, ": a log goes with its pod", has));
  if (members.empty()) return absl::NotFoundError(str_cat("\"", job.name, "\" has no logs"));
  if (options.previous)
    return absl::NotFoundError(str_cat("\"", job.name, "\" has no logs of an earlier attempt any more", has));
  return absl::NotFoundError(str_cat("\"", job.name, "\" has no member \"", options.member, "\"", has));
}

// Prints from several threads, and keeps the first error.
class Output {
 public:
  Output(Call& call, bool terminal, bool prefix) : call_(call), printer_(call.out, terminal, prefix) {}

  // Reads a pod's log to its end. `alone`: its error is the command's, and no remark.
  void read(const SlimPod& pod, const LogRequest& request, const std::stop_token& stop, bool alone) {
    LogSource source{.id = pod.key, .member = member_name(pod.role, pod.index)};
    const LogSink sink{.bytes = [&](std::string_view bytes) { return feed(source, bytes); },
                       .remark = [this](const std::string& text) { remark(text); }};
    const absl::Status status = call_.jobs.read_log(pod, request, sink, stop);
    const std::lock_guard lock(mutex_);
    printer_.end(source);
    call_.out.flush();
    if (status.ok()) return;
    const bool remarked = !alone && !absl::IsCancelled(status);
    if (remarked) print_remark(std::string(status.message()));
    first_.Update(remarked ? absl::Status(status.code(), "not all logs could be read") : status);
  }
  absl::Status first() {
    const std::lock_guard lock(mutex_);
    return first_;
  }
  // False: nobody reads any more.
  bool open() {
    const std::lock_guard lock(mutex_);
    return static_cast<bool>(call_.out);
  }

 private:
  bool feed(LogSource& source, std::string_view bytes) {
    const std::lock_guard lock(mutex_);
    printer_.feed(source, bytes);
    call_.out.flush();
    return static_cast<bool>(call_.out);
  }
  void remark(const std::string& text) {
    const std::lock_guard lock(mutex_);
    print_remark(text);
  }
  void print_remark(const std::string& text) {
    call_.err << call_.program << ": " << text << "\n" << std::flush;
  }

  Call& call_;
  std::mutex mutex_;
  LogPrinter printer_;
  absl::Status first_;
};

// One pod whose log is read; `over` where no more will come.
struct Followed {
  std::string uid;
  std::atomic<bool> over = false, done = false;
  std::jthread thread = {};  // last: it uses the above
};

absl::Status follow(Call& call, Output& output, const JobView& followed, const LogsOptions& options) {
  std::stop_source enough;  // asked to end, or nobody reads
  const std::stop_callback link(call.stop, [&] { enough.request_stop(); });
  std::set<std::string> known;  // uids
  std::list<Followed> logs;
  for (;;) {
    const auto object = call.jobs.job(call.ns, followed.name);
    const JobView job = object.ok() ? read_job(*object) : followed;
    const bool ended =
        absl::IsNotFound(object.status()) || job.uid != followed.uid || (object.ok() && has_ended(job));
    const auto pods = object.ok() ? call.jobs.logged_pods(call.ns, job.name)
                                  : absl::StatusOr<std::vector<SlimPod>>(object.status());
    const auto wanted = pods.ok() ? chosen(job, *pods, options) : pods;
    const bool refused =
        absl::IsPermissionDenied(wanted.status()) || absl::IsUnauthenticated(wanted.status());
    if (known.empty() && refused) return wanted.status();
    if (known.empty() && wanted.ok() && wanted->size() > kMaxFollowed)
      return absl::ResourceExhaustedError(str_cat("\"", job.name, "\" has more than ", kMaxFollowed,
                                                  " logs to follow; name a member or a role"));
    std::erase_if(logs, [](const Followed& log) { return log.done.load(); });
    for (Followed& log : logs)
      log.over =
          ended || (wanted.ok() && std::ranges::find(*wanted, log.uid, &SlimPod::uid) == wanted->end());
    for (const SlimPod& pod : wanted.ok() ? *wanted : std::vector<SlimPod>()) {
      if (logs.size() >= kMaxFollowed || !known.insert(pod.uid).second) continue;
      Followed& log = logs.emplace_back();
      log.uid = pod.uid;
      log.over = ended;
      log.thread =
          std::jthread([&output, &log, pod, request = options.log, stop = enough.get_token()]() mutable {
            request.over = [&log] { return log.over.load(); };
            output.read(pod, request, stop, false);
            log.done = true;
          });
    }
    if (ended) break;
    if (output.open() && call.pause(options.interval, enough.get_token())) continue;
    enough.request_stop();
    break;
  }
  logs.clear();  // joins
  return call.stop.stop_requested() ? absl::CancelledError("stopped") : output.first();
}

}  // namespace

absl::Status job_logs(Call& call, const LogsOptions& options) {
  PL_ASSIGN_OR_RETURN(const Json object, call.jobs.choose(call.ns, options.name));
  const JobView job = read_job(object);
  PL_ASSIGN_OR_RETURN(const std::vector<SlimPod> all, call.jobs.logged_pods(call.ns, job.name));
  PL_ASSIGN_OR_RETURN(const std::vector<SlimPod> pods, chosen(job, all, options));
  if (pods.empty() && (has_ended(job) || !options.log.follow)) return nothing_to_read(job, all, options);
  const bool one = options.member.find_first_of("/-") != std::string::npos;
  Output output(call, options.to_terminal, !one);
  if (options.log.follow) return follow(call, output, job, options);
  for (const SlimPod& pod : pods) {
    if (!absl::IsCancelled(output.first())) output.read(pod, options.log, call.stop, pods.size() == 1);
  }
  return output.first();
}

}  // namespace paceline::cli

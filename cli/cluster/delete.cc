// delete: asks for it, and waits until the object is gone.

#include <utility>

#include "base/status.h"
#include "cli/cluster/call.h"
#include "cli/cluster/job_view.h"
#include "cli/state/stopped.h"

namespace paceline::cli {

namespace {

using kube::Json;

constexpr Duration kFirstLook = std::chrono::milliseconds(100);
constexpr Duration kLongestLook = std::chrono::seconds(2);

struct Going {
  std::string ns, name, uid;
};

absl::Status wait_until_gone(Call& call, const Going& job, const Deadline& deadline) {
  Duration wait = kFirstLook;
  for (;;) {
    PL_ASSIGN_OR_RETURN(const bool there, call.jobs.exists(job.ns, job.name, job.uid));
    if (!there) return absl::OkStatus();
    if (deadline.expired(call.clock.now())) {
      return absl::DeadlineExceededError(
          str_cat("job ", job_text(job.ns, job.name),
                  " is marked for deletion, but still there: something holds it (metadata.finalizers); see `",
                  call.program, " describe ", job.name, call.jobs.where(job.ns), "`"));
    }
    if (!call.pause(std::min(wait, deadline.remaining(call.clock.now())), call.stop))
      return absl::CancelledError("stopped");
    wait = std::min(2 * wait, kLongestLook);
  }
}

}  // namespace

absl::Status delete_jobs(Call& call, const DeleteOptions& options) {
  std::vector<std::pair<std::string, std::string>> wanted;  // namespace, name
  std::string stopped;
  for (const std::string& name : options.names) wanted.emplace_back(call.ns, name);
  if (options.finished) {
    PL_ASSIGN_OR_RETURN(const JobSource::Listed all, call.jobs.list_jobs(call.all_namespaces ? "" : call.ns));
    for (const Json& object : all.objects) {
      const JobView job = read_job(object);
      if (!has_ended(job)) continue;
      if (job.status.reason == kStopped) {
        stopped += str_cat(stopped.empty() ? "" : ", ", job.name);
      } else {
        wanted.emplace_back(job.ns, job.name);
      }
    }
  }
  std::string propagation = options.cascade;
  propagation[0] = static_cast<char>(propagation[0] - 'a' + 'A');
  absl::Status first;
  std::vector<Going> going;
  const auto note = [&](const absl::Status& status) {
    if (!status.ok() && !first.ok()) call.err << call.program << ": " << status.message() << "\n";
    first.Update(status);
  };
  const auto print_deleted = [&](const Going& job) {
    call.out << call.jobs.reference(job.name)
             << (call.all_namespaces ? str_cat(" in namespace ", job.ns) : "") << " deleted\n";
  };
  for (const auto& [ns, name] : wanted) {
    const auto removed = call.jobs.remove(ns, name, propagation);
    note(removed.status());
    if (!removed.ok()) continue;
    going.push_back({ns, name, kube::text_at(*removed, {"metadata", "uid"})});
    if (!options.wait) print_deleted(going.back());
  }
  // Their users were told that they may go on.
  if (!stopped.empty()) {
    call.out << "kept, since they were stopped and may be resumed: " << stopped << "; `" << call.program
             << " delete NAME` deletes them\n";
  }
  if (!options.wait) return first;
  const Deadline deadline = Deadline::after(call.clock.now(), options.timeout);
  for (const Going& job : going) {
    const absl::Status gone = wait_until_gone(call, job, deadline);
    note(gone);
    if (gone.ok()) print_deleted(job);
  }
  return first;
}

}  // namespace paceline::cli

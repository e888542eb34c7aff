// delete: asks for it, and waits until the object is gone.

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_join.h"
#include "base/status.h"
#include "cli/cluster/call.h"
#include "cli/cluster/job_view.h"
#include "cli/state/stopped.h"

namespace paceline::cli {

namespace {

using kube::Json;

constexpr Duration kFirstLook = std::chrono::milliseconds(100);
constexpr Duration kLongestLook = std::chrono::seconds(2);

struct Named {
  std::string ns, name, uid;  // uid empty: whichever job has the name
};

absl::Status wait_until_gone(Call& call, const Named& job, const Deadline& deadline) {
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

// Why --finished leaves it, in words behind "since they"; empty: it does not.
std::string why_kept(const JobSource& jobs, const JobView& job) {
  if (job.status.reason == kStopped) return "were stopped and may be resumed";
  if (job.run && job.run->phase == kUnknownPhase) return "have a damaged status.json and may have succeeded";
  const bool failed = job.run && job.run->phase == "Failed";
  return failed && jobs.has_checkpoint(*job.run) ? "failed and may go on from their checkpoints" : "";
}

// The names that are kept, by why: their users were told that they may go on.
using Kept = std::map<std::string, std::vector<std::string>>;

void print_kept(const Call& call, const Kept& kept) {
  for (const auto& [why, names] : kept) {
    call.out << "kept, since they " << why << ": " << absl::StrJoin(names, ", ") << "; `" << call.program
             << " delete NAME" << (call.all_namespaces ? "" : call.jobs.where(call.ns)) << "` deletes them\n";
  }
}

}  // namespace

absl::Status delete_jobs(Call& call, const DeleteOptions& options) {
  std::vector<Named> wanted;
  Kept kept;
  for (const std::string& name : options.names) wanted.push_back({call.ns, name, ""});
  if (options.finished) {
    PL_ASSIGN_OR_RETURN(const JobSource::Listed all, call.jobs.list_jobs(call.all_namespaces ? "" : call.ns));
    for (const Json& object : all.objects) {
      const JobView job = read_job(object);
      if (!has_ended(job)) continue;
      const std::string why = why_kept(call.jobs, job);
      if (!why.empty()) {
        kept[why].push_back(job.name);
      } else {
        wanted.push_back({job.ns, job.name, job.uid});
      }
    }
  }
  std::string propagation = options.cascade;
  propagation[0] = static_cast<char>(propagation[0] - 'a' + 'A');
  absl::Status first;
  std::vector<Named> going;
  const auto note = [&](const absl::Status& status) {
    if (!status.ok() && !first.ok()) call.err << call.program << ": " << status.message() << "\n";
    first.Update(status);
  };
  const auto print_deleted = [&](const Named& job) {
    call.out << call.jobs.reference(job.name)
             << (call.all_namespaces ? str_cat(" in namespace ", job.ns) : "") << " deleted\n";
  };
  for (const auto& [ns, name, uid] : wanted) {
    const auto removed = call.jobs.remove(ns, name, uid, propagation);
    note(removed.status());
    if (!removed.ok()) continue;
    going.push_back({ns, name, kube::text_at(*removed, {"metadata", "uid"})});
    if (!options.wait) print_deleted(going.back());
  }
  print_kept(call, kept);
  if (!options.wait) return first;
  const Deadline deadline = Deadline::after(call.clock.now(), options.timeout);
  for (const Named& job : going) {
    const absl::Status gone = wait_until_gone(call, job, deadline);
    note(gone);
    if (gone.ok()) print_deleted(job);
  }
  return first;
}

}  // namespace paceline::cli

#pragma once

// One command's work on jobs: what it may use, and the commands themselves. Each prints its results to
// `out`, remarks to `err`, and returns why it failed, in plain words (api_error_text.h). One thread calls.

#include <optional>
#include <ostream>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/ids.h"
#include "cli/cluster/dashboard_client.h"
#include "cli/cluster/job_client.h"
#include "cli/view/terminal.h"
#include "controller/cluster/kube/pause.h"

namespace paceline::cli {

struct Call {
  JobSource& jobs;
  JobClient* client = nullptr;                 // on a cluster: the same, for what only an API server has
  const DashboardClient* dashboard = nullptr;  // of its controller, where one was named
  std::stop_token stop = {};
  std::string ns;  // that names are of
  bool all_namespaces = false;
  std::string program;  // "paceline", "kubectl paceline"
  const Clock& clock;
  const Terminal& terminal;
  std::ostream& out;
  std::ostream& err;
  kube::Pause pause = kube::real_pause;  // false: asked to end
};

struct GetOptions {
  std::string name;              // empty: all
  std::string output = "table";  // table, wide, json, yaml, name
  bool watch = false;            // then those that change, until asked to end: CANCELLED
  bool all = false;              // and those that are deleted. REQUIRES: not watch
};
absl::Status get_jobs(Call& call, const GetOptions& options);
absl::Status describe_job(Call& call, const std::string& name);

struct ApplyFile {
  std::string path;    // "-": standard input; for messages
  std::string object;  // JSON, as the user wrote it (api/json_text.h)
};
struct ApplyOptions {
  bool dry_run = false, force = false;
  bool ns_given = false;  // by -n: a file with another one is refused
};
// All of them, also after one failed; the first failure is returned, the others are on `err`.
absl::Status apply_jobs(Call& call, const std::vector<ApplyFile>& files, const ApplyOptions& options);

inline constexpr Duration kDeleteTimeout = std::chrono::minutes(10);
struct DeleteOptions {
  std::vector<std::string> names;
  bool finished = false;  // and all that have ended
  bool wait = true;
  std::string cascade = "background";  // foreground, orphan
  Duration timeout = kDeleteTimeout;   // of waiting
};
absl::Status delete_jobs(Call& call, const DeleteOptions& options);

struct EventsOptions {
  std::string name;    // empty: of all jobs
  bool watch = false;  // then those that come, until asked to end: CANCELLED
};
absl::Status list_events(Call& call, const EventsOptions& options);

// `suspend` false: resumes. All of the names, as with apply_jobs().
absl::Status suspend_jobs(Call& call, const std::vector<std::string>& names, bool suspend);

struct Scaling {
  Role role;
  std::int64_t replicas;
};
// "worker=4". INVALID_ARGUMENT says what is allowed.
absl::StatusOr<Scaling> parse_scaling(std::string_view text);
// Likewise of several, each of another role.
absl::StatusOr<std::vector<Scaling>> parse_scalings(const std::vector<std::string>& texts);
absl::Status scale_job(Call& call, const std::string& name, const std::vector<Scaling>& scalings);

// Asks for a checkpoint, and waits until it is written.
absl::Status checkpoint_job(Call& call, const std::string& name);
// Asks for a member's replacement ("worker-2", "worker/2"), and waits until it is decided.
absl::Status replace_member(Call& call, const std::string& name, const std::string& member);

// How a job is and why; of one on a cluster also what the planner would do now. Nothing is done.
absl::Status explain_job(Call& call, const std::string& name);

struct TopOptions {
  std::string name;
  Duration interval = std::chrono::seconds(2);
  bool once = false;
};
absl::Status top_job(Call& call, const TopOptions& options);

inline constexpr std::size_t kMaxFollowed = 128;  // logs at once, each with a thread
struct LogsOptions {
  std::string name, member;  // empty: the newest job; all members
  bool previous = false;     // of each member the attempt before the present one
  LogRequest log;
  Duration interval = std::chrono::seconds(2);  // between two looks for new pods and the job's end
  bool to_terminal = false;
};
// Following ends with the job, with CANCELLED when asked to, and when nobody reads any more.
absl::Status job_logs(Call& call, const LogsOptions& options);

}  // namespace paceline::cli

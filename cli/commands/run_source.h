#pragma once

// The runs of this machine as a source of jobs: a run is an object as an API server has it, whose name is the
// run's and whose status has also `run`, all that the run's folder tells (cli/state/run_state.h). Its uid is
// the name and when the run was created: a later run may have the name. One thread, but for read_log().

#include <array>
#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "cli/cluster/job_source.h"
#include "cli/state/run_store.h"
#include "controller/cluster/kube/pause.h"

namespace paceline::cli {

// A file's number, and the time of its last change in seconds and nanoseconds.
using FileVersion = std::array<std::int64_t, 3>;

class RunSource : public JobSource {
 public:
  // `out`: told of a run that is to be stopped before it is removed. `pause`: between two looks at a log, or
  // at an owner.
  RunSource(RunStore store, const Clock& clock, std::ostream& out, kube::Pause pause = kube::real_pause)
      : store_(std::move(store)), clock_(clock), out_(out), pause_(std::move(pause)) {}

  absl::StatusOr<Listed> list_jobs(const std::string& ns) override;  // newest first
  absl::StatusOr<kube::Json> job(const std::string& ns, const std::string& name) override;
  absl::StatusOr<kube::Json> choose(const std::string& ns, const std::string& name) override;
  absl::StatusOr<std::vector<kube::SlimPod>> pods(const std::string&, const std::string&) override {
    return std::vector<kube::SlimPod>();
  }
  absl::StatusOr<std::vector<kube::SlimPod>> logged_pods(const std::string& ns,
                                                         const std::string& job) override;
  absl::Status read_log(const kube::SlimPod& pod, const LogRequest& request, const LogSink& sink,
                        std::stop_token stop) override;
  absl::StatusOr<Events> events(const std::string& ns, const std::string& name) override;
  // Takes spec.runPolicy.suspend, the worker's replicas and the annotations of api/requests.h alone, and
  // waits for other commands' edits. DEADLINE_EXCEEDED: another one has been under way for kEditLimit.
  absl::StatusOr<kube::Json> patch(const std::string& ns, const std::string& name, const kube::Json& patch,
                                   const std::string& what) override;
  absl::Status await_owner(const std::string& name, const char* verb, std::ostream& err) override;
  absl::StatusOr<std::string> await_suspended(const std::string& name, std::ostream& err) override;
  // A run that goes on is stopped first, as by ctrl-C in its terminal; at once where that takes too long.
  absl::StatusOr<kube::Json> remove(const std::string& ns, const std::string& name, const std::string& uid,
                                    const std::string& propagation) override;
  absl::StatusOr<bool> exists(const std::string&, const std::string&, const std::string&) override {
    return false;  // remove() returns when it is gone
  }
  bool has_checkpoint(const RunState& run) const override;
  std::string reference(const std::string& name) const override { return name; }
  std::string where(const std::string&) const override { return store_.where(); }
  std::string none(const std::string& ns, const std::string& program) const override;

  // The last list leaves these out, for these reasons.
  const std::vector<absl::Status>& left_out() const { return left_out_; }

 private:
  static constexpr std::size_t kMostJobs = 4096;
  static constexpr Duration kEditLimit = std::chrono::seconds(10);         // an owner looks twice a second
  static constexpr Duration kSuspensionLimit = std::chrono::seconds(330);  // its chief may save for 310 s
  static constexpr Duration kToldAfter = std::chrono::seconds(1);
  static constexpr Duration kBetweenLooks = std::chrono::milliseconds(50);
  static constexpr Duration kBetweenEdits = std::chrono::milliseconds(10);
  struct Job {
    FileVersion version{};  // of its file
    kube::Json json;
  };
  kube::Json object_of(const RunState& state);
  absl::StatusOr<kube::Json> object_of(const absl::StatusOr<RunState>& state);
  // The job as its user wrote and edited it; its file is read again when it is another one.
  const kube::Json& job_in(const std::string& folder);

  const RunStore store_;
  const Clock& clock_;
  std::ostream& out_;
  const kube::Pause pause_;
  std::map<std::string, Job> jobs_;  // by the run's folder
  std::vector<absl::Status> left_out_;
};

}  // namespace paceline::cli

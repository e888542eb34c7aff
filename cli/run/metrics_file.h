#pragma once

// metrics.jsonl of a run (docs/metrics.md): written as things are heard of, flushed several times a second.
// Lines are thinned to at most kMaxStepsPerBatch steps per heartbeat, so that a job with thousands of steps a
// second doesn't fill the disk. Only whole lines are written. One thread at a time. The first write error is
// kept and ends the writing: metrics must not end a training.

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/unique_fd.h"
#include "controller/coordinator/report.h"

namespace paceline::cli {

class MetricsFile {
 public:
  // Appends to `path`, after its last whole line: what a killed owner left of another is cut off. The times
  // of what is recorded go on from `seconds_before`, which a resumed run has taken already.
  static absl::StatusOr<std::unique_ptr<MetricsFile>> open(const std::string& path,
                                                           double seconds_before = 0);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  void steps(std::span<const coordinator::StepRecord> records);
  void view(const coordinator::ViewRecord& view);  // written ahead of the first step of its members
  void member_steps(const coordinator::MemberSteps& steps);
  void evaluation(const coordinator::EvaluationRecord& record);
  void flush();
  absl::Status status() const { return status_; }

  static constexpr std::size_t kMaxStepsPerBatch = 32;
  static constexpr std::size_t kMaxMemberStepsPerBatch = 8;

 private:
  MetricsFile(std::string path, UniqueFd file, double seconds_before)
      : path_(std::move(path)), file_(std::move(file)), seconds_before_(seconds_before) {}
  void write(std::string_view line);
  const std::string path_;
  const UniqueFd file_;
  const double seconds_before_;
  std::string lines_;  // not written yet
  std::string view_;   // the newest view's line, until a member tells of a step
  absl::Status status_;
};

}  // namespace paceline::cli

#pragma once

// The series of a run from its metrics.jsonl, which is read on from where the last read ended. A file that
// was replaced or cut is read anew. One thread at a time.

#include <sys/types.h>

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "controller/dashboard/job_series.h"

namespace paceline::cli {

class MetricsTail {
 public:
  explicit MetricsTail(std::string path) : path_(std::move(path)) {}

  // Reads at most about `most_bytes`. True: all that is there is read; also where there is no file. An error:
  // it can't be read on; the series is what was read before.
  absl::StatusOr<bool> read(std::size_t most_bytes);
  const dashboard::JobSeries& series() const { return series_; }

 private:
  void take_lines();

  const std::string path_;
  ino_t file_ = 0;
  off_t offset_ = 0;   // in it: all before is read
  std::string begun_;  // the line that goes on there
  dashboard::JobSeries series_;
};

}  // namespace paceline::cli

#pragma once

// A job's steps over time as its status tells them: every few seconds the newest step, its loss, and the
// means of each member's last steps. Whoever may read the status has them, of any controller, from the first
// status that it saw on. Bounded: kSamples statuses (where there are more, they lie the closer the newer they
// are) of kMembers members. Pure; one thread at a time.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "controller/cluster/kube/json.h"
#include "controller/dashboard/job_series.h"

namespace paceline::dashboard {

class StatusSamples {
 public:
  static constexpr std::size_t kSamples = 256, kMembers = 256;
  static constexpr std::size_t kHeld = 64;        // steps that one sample's means are told of, at most
  static constexpr std::size_t kReplayed = 2048;  // and all samples' together, of each member

  // False: its step is the last sample's, or it trains no more.
  bool add(const kube::Json& object, WallTime now);
  // Adds the samples from that number on, of which the first has 0. A member's means count for the steps
  // since the sample before.
  void add_to(JobSeries& series, std::uint64_t from = 0) const;

  // The number of the next sample.
  std::uint64_t version() const { return version_; }
  Step newest() const { return samples_.empty() ? -1 : samples_.back().step; }

 private:
  using Times = std::array<float, kParts.size()>;
  struct Sample {
    std::uint64_t number = 0;  // of all that there were
    Step step = 0;
    double loss = 0, seconds = 0;
    std::optional<EvaluationPoint> evaluation;           // where it is another one than before
    std::vector<std::pair<std::size_t, Times>> members;  // index of names_, and its means
  };
  std::size_t index_of(const std::string& member);
  void thin();

  std::vector<std::string> names_, view_;
  std::vector<Sample> samples_;
  std::optional<EvaluationPoint> evaluation_;  // the newest
  std::optional<WallTime> begun_;  // the first start that a status told of; a resumption has another
  std::uint64_t version_ = 0;
};

}  // namespace paceline::dashboard

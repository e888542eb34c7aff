#pragma once

// A job's steps over time as its status tells them: every few seconds the newest step, its loss, and the
// means of each member's last steps. Whoever may read the status has them, of any controller, from the first
// status that it saw on. Bounded: kSamples statuses (where there are more, they lie the closer the newer they
// are) of kMembers members; in no more cells than it is given, of which a job of 8 members takes 3,072, or
// 96 KiB, at most. Pure; one thread at a time.

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
  // A cell is the memory of a member in a sample; a sample without members takes kSampleCells.
  static constexpr std::size_t kCellBytes = 32, kSampleCells = 4;
  static constexpr std::size_t kMostCells = kSamples * (kSampleCells + kMembers);

  explicit StatusSamples(std::uint64_t first = 0) : version_(first) {}  // `first`: the first one's number

  // The cells of kSamples statuses with as many members as this one.
  static std::size_t cells_for(const kube::Json& object);

  // False: its step is the last sample's or no step (beyond kMostCount), or it trains no more. Where there
  // are more than `most_cells`, samples go, but for the first and the newest. Seconds count from the job's
  // creation, which no resumption changes, and each process knows.
  bool add(const kube::Json& object, WallTime now, std::size_t most_cells = kMostCells);
  // Adds the samples from that number on. A member's means count for the steps since the sample before.
  void add_to(JobSeries& series, std::uint64_t from = 0) const;

  // The number of the next sample.
  std::uint64_t version() const { return version_; }
  Step newest() const { return samples_.empty() ? -1 : samples_.back().step; }
  std::size_t cells() const { return cells_; }

 private:
  using Times = std::array<float, kParts.size()>;
  struct Cell {
    std::uint16_t member;  // index of names_
    Times means;
  };
  struct Sample {
    std::uint64_t number = 0;
    Step step = 0;
    double loss = 0, seconds = 0;
    std::optional<EvaluationPoint> evaluation;  // where it is another one than before
    std::vector<Cell> members;
    std::size_t cells() const { return kSampleCells + members.size(); }
  };
  static_assert(sizeof(Cell) <= kCellBytes && kMembers <= 1 << 16);
  static_assert(sizeof(Sample) + 16 <= kSampleCells * kCellBytes);  // 16: what an allocation costs
  std::size_t index_of(const std::string& member);
  void thin();

  std::vector<std::string> names_, view_;
  std::vector<Sample> samples_;
  std::size_t cells_ = 0;
  std::optional<EvaluationPoint> evaluation_;  // the newest
  std::uint64_t version_;
};

}  // namespace paceline::dashboard

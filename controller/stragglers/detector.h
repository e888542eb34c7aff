#pragma once

// Which member holds the others back, from the times that members measure. Pure; docs/stragglers.md tells how
// it decides.
//
// In synchronous training every step takes as long as its slowest member, so whole steps tell nothing, and
// the time in the exchange is the longest for those that wait. Each member's own time (input, compute,
// update) is compared with the others' median, block by block (blocks.h), by a sequential test (series.h);
// and so is its busy time, with the transfer: a member that lacks a processor may move bytes slowly before
// all else. (NCCL's transfer has the wait for the others in it: busy times are alike there, and own times
// count.) A member is found where all of this holds, and stays so until the test is back where it began:
// - the test says that its own time is `factor` times the others', and not by chance;
// - over the blocks since it began, kLeastBlocks at least, its ratio is more than half of the way to
//   `factor`, kSure standard errors included, and so it is, without them, in the latest kLatest blocks;
// - a step takes `least_excess` and kLeastShare of itself longer for it;
// - it waits for less than the median member does, in kLeastWaiting of the blocks.
// Members may tell their samples or tokens: then a member whose time for each of them is as the others' has
// more work, and is not slow. Where a third of the members are found, two at least and not all, it is
// nobody's fault: all are slow. So it is where a step of the median member takes longer than before.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/ids.h"
#include "controller/stragglers/blocks.h"
#include "controller/stragglers/series.h"

namespace paceline::stragglers {

inline constexpr int kLeastBlocks = 20, kLatest = 8;
inline constexpr double kSure = 3, kLeastShare = 0.05, kLeastWaiting = 0.6;

struct Settings {
  double factor = 1.15;  // above 1
  Duration least_excess = std::chrono::milliseconds(2);
};

enum class FindingKind : std::uint8_t { kSlow, kMoreWork, kAllSlow };
enum class Part : std::uint8_t { kInput, kCompute, kUpdate, kTransfer };
const char* kind_name(FindingKind kind);
const char* part_name(Part part);

struct Finding {
  FindingKind kind = FindingKind::kSlow;
  int place = -1;            // the member's; kAllSlow: -1
  Part part = Part::kInput;  // where most of the excess is
  double factor =
      1;  // its own time, or its busy one, over the others' median; kAllSlow: a step's over an earlier one's
  Step since = 0;             // the first step that counts
  std::int64_t steps = 0;     // that count, from there on
  Duration own{}, typical{};  // of a step: its own time, and the others' median
  Duration lost{};            // a step would be so much shorter without it; kAllSlow: than before
  int members = 1;            // that are slow; kAllSlow: 0 where it is not known which
  std::vector<int> places;    // kAllSlow: of those

  bool operator==(const Finding&) const = default;
};

// How near a member is to being found.
struct Standing {
  int place = -1;
  double ratio = 1;     // its own time over the others' median, a median of the latest kLatest blocks
  double evidence = 0;  // of what it takes, 0 to 1
  Duration excess{};    // of a step, over the blocks since the test began to rise
  bool found = false;
};

class Detector {
 public:
  explicit Detector(Settings settings);
  // `places`: of the members, by rank; what is known of a place stays from view to view.
  void begin_view(std::span<const int> places);
  // Another member has this place from now on: nothing is found of it.
  void forget(int place);
  // All members' times are others from the next view on: nothing is known. REQUIRES: begin_view() follows.
  void begin_anew();
  // REQUIRES: 0 <= rank < members of the view.
  void add(int rank, const StepSample& sample);
  // Draws the conclusions. Whether what is found is something else than before, but for numbers.
  bool advance();
  // Enough blocks were judged since the beginning for a member that is slow to be found.
  bool knows() const { return judged_ >= kLeastBlocks; }
  // Each member of the view, by rank.
  std::vector<Standing> standings() const;
  // Its own time of a step in seconds, by rank: the median of its latest kLeastBlocks blocks. Empty: not all
  // members have so many.
  std::vector<double> own_times() const;
  // By place. At most one of kAllSlow, and nothing beside it.
  const std::vector<Finding>& findings() const { return findings_; }

 private:
  // One of a member's times beside the others'.
  struct Measure {
    explicit Measure(double factor) : series(factor) {}
    Noise noise;
    double width = 0;
    Series series;
    std::vector<double> early;             // values before the noise is known
    std::array<double, kLatest> latest{};  // values, clipped
    std::size_t count = 0;                 // that were put there
    void add(double value, std::size_t members);
    double mean_of_latest() const;
  };
  // Sums for what is told, over the latest kMostBlocks to twice as many of the blocks below, so that a member
  // that became much slower is not told to be a little slow.
  struct Told {
    static constexpr int kMostBlocks = 32;
    double blocks = 0, own = 0, busy = 0, typical_own = 0, typical_busy = 0;
    void halve();
  };
  // Sums over the blocks since a series began to rise; of the last kMostBlocks to twice as many.
  struct Sums {
    static constexpr int kMostBlocks = 512;
    Step since = 0;
    std::int64_t steps = 0;
    double blocks = 0, waits_less = 0;
    double own_log = 0, busy_log = 0, rate_log = 0;  // clipped
    double own = 0, busy = 0, typical_own = 0, typical_busy = 0, typical_step = 0;
    std::array<double, 4> excess{};  // by part
    Told told;
    void halve();
  };
  struct Member {
    explicit Member(double factor) : own(factor), busy(factor), rate(factor) {}
    Measure own, busy, rate;           // rate: own time for each sample or token
    std::optional<FindingKind> found;  // since then it stays that, or becomes kSlow
    bool by_busy = false;              // its busy time found it, and its own did not
    Sums sums;
    std::array<double, kLatest> ratios{};  // logs of own times, as they are
    std::size_t count = 0;                 // that were put there
    std::array<double, kLeastBlocks> own_times{};
    std::size_t times = 0;  // that were put there
  };
  struct Typical {
    double input = 0, compute = 0, update = 0, transfer = 0, wait = 0, step = 0;
  };
  struct Logs {
    double own = 0, busy = 0, rate = 0;
  };
  void judge(const Block& block);
  void judge_member(Member& member, const Block& block, const Row& row, Logs logs, const Typical& typical);
  void judge_all(const Block& block, const Typical& typical, double step);
  bool is_found(const Sums& sums, const Measure& measure, double sum, double excess) const;
  void judge(Member& member) const;
  Finding finding_of(int place, const Member& member) const;
  bool is_slow_now(const Member& member) const;
  std::vector<int> slow_together(std::span<const Finding> found) const;
  std::vector<Finding> find();
  Member& member(int place);

  Settings settings_;
  Blocks blocks_;
  std::vector<int> places_;
  std::vector<Member> members_;  // by place
  // These are of all: a step of the median member, beside what it takes as a rule.
  Noise step_noise_;
  Series step_;
  double usual_step_ = 0, usual_blocks_ = 0;  // in logs, and how many it is made of
  struct StepSums {
    Step since = 0;
    std::int64_t steps = 0;
    double blocks = 0, step = 0, usual = 0, input = 0, compute = 0, update = 0;
  } step_sums_;
  std::vector<Finding> findings_;
  int judged_ = 0;  // blocks, kLeastBlocks at most
};

}  // namespace paceline::stragglers

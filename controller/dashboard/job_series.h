#pragma once

// A job's steps over time: loss, learning rate and time of its steps, its evaluations, and where each
// member's time went. Fed in the order in which it happens, from metrics.jsonl or by a coordinator; asked for
// windows of any length. Bounded whatever the job's length (pyramid.h): kMembers members, kEvaluations
// evaluations. Pure; one thread at a time.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "controller/dashboard/pyramid.h"

namespace paceline::dashboard {

// The parts of a member's step, in the order of MemberPoint::ms. The last is the whole.
inline constexpr std::array<std::string_view, 7> kParts = {"input",  "compute",    "wait", "transfer",
                                                           "update", "checkpoint", "step"};

// NaN: not known, or not finite.
struct StepPoint {
  Step step = 0;
  double loss = 0, learning_rate = 0, seconds = 0;  // seconds: since the run began
};

struct EvaluationPoint {
  Step step = 0;
  double loss = 0, accuracy = 0, seconds = 0;
  std::optional<double> auc;
};

struct MemberPoint {
  std::string member;  // worker-1
  Step step = 0;
  std::array<float, kParts.size()> ms{};
};

class JobSeries {
 public:
  static constexpr std::size_t kPoints = 1024;       // columns of each level
  static constexpr std::size_t kColumns = 512;       // of each level and member
  static constexpr std::size_t kMembers = 1024;      // further ones are left out
  static constexpr std::size_t kTold = 512;          // points of a member that are kept one by one
  static constexpr std::size_t kEvaluations = 4096;  // every other one goes where there are more
  static constexpr std::size_t kCells = 1 << 20;     // of a heat map, all parts together

  void add(const StepPoint& point);
  void add(const EvaluationPoint& point);
  void add(const MemberPoint& point) { add(point, point.step, point.step); }
  // Its means are of all steps from `first` on. `newest`: the step of the last point that is about to come.
  void add(const MemberPoint& point, Step first, Step newest);
  // Members by rank, from here on.
  void set_view(std::vector<std::string> members) { view_ = std::move(members); }

  // Grows with everything that is added.
  std::uint64_t version() const { return version_; }
  // The newest step that was told of, or where training goes on from an earlier checkpoint, its own; -1:
  // none.
  Step newest() const { return newest_; }

  struct Points {
    Step width = 1;           // steps of each
    std::vector<Step> steps;  // the first of each; those that nothing was told of are left out
    std::vector<double> loss, learning_rate, seconds, steps_per_second;  // NaN: not known
  };
  // All of it, as at most `most` points.
  Points points(std::size_t most) const;
  const std::vector<EvaluationPoint>& evaluations() const { return evaluations_; }
  std::size_t members() const { return members_.size(); }  // that were told of

  struct HeatMap {
    Step width = 1;
    std::vector<Step> steps;           // the first of each column
    std::vector<std::string> members;  // by rank, then those that are in no view now, by name
    std::size_t ranks = 0;             // of them are in the view
    // ms[part][member * steps.size() + column]; NaN: nothing was told.
    std::array<std::vector<float>, kParts.size()> ms;
  };
  // The steps of [from, to], as at most `columns` columns, and no more than kCells allows.
  HeatMap heat_map(Step from, Step to, std::size_t columns) const;

 private:
  struct Told {
    Step first, last, newest;
    std::array<float, kParts.size()> ms;
  };
  struct Steps {
    Pyramid<float> means;
    Step newest = -1;
    Steps() : means(kParts.size(), kColumns) {}
    void add(const Told& told);
  };
  // Few points take less memory as they were told: a heat map makes steps of them, a member at a time.
  struct Member {
    std::vector<Told> told;      // at most kTold
    std::optional<Steps> steps;  // of more than that: of all, and `told` is empty
  };
  template <typename Use>
  static void with_steps(const Member& member, Use use);

  Pyramid<double> steps_{4, kPoints};  // step, loss, learning rate, seconds
  Step newest_step_ = -1, newest_ = -1;
  std::map<std::string, Member, std::less<>> members_;
  std::vector<EvaluationPoint> evaluations_;
  std::vector<std::string> view_;
  std::uint64_t version_ = 0;
};

}  // namespace paceline::dashboard

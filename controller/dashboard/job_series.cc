#include "controller/dashboard/job_series.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace paceline::dashboard {

namespace {

constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();

}  // namespace

void JobSeries::add(const StepPoint& point) {
  if (point.step <= newest_step_) {  // it goes on from an earlier checkpoint
    steps_.cut(point.step - 1);
    std::erase_if(evaluations_, [&](const EvaluationPoint& each) { return each.step > point.step; });
    newest_ = point.step;
  }
  newest_step_ = point.step;
  newest_ = std::max(newest_, point.step);
  const double values[] = {static_cast<double>(point.step), point.loss, point.learning_rate, point.seconds};
  steps_.add(point.step, values);
  ++version_;
}

void JobSeries::add(const EvaluationPoint& point) {
  const auto behind = std::ranges::find_if(
      evaluations_, [&](const EvaluationPoint& each) { return each.step >= point.step; });
  if (behind != evaluations_.end() && behind->step == point.step) {
    *behind = point;
  } else {
    evaluations_.insert(behind, point);
  }
  if (evaluations_.size() > kEvaluations) {
    std::size_t index = 0;
    std::erase_if(evaluations_, [&](const EvaluationPoint&) { return index++ % 2 == 1; });
  }
  ++version_;
}

void JobSeries::add(const MemberPoint& point, Step first, Step newest) {
  auto found = members_.find(point.member);
  if (found == members_.end()) {
    if (members_.size() >= kMembers) return;
    found = members_.try_emplace(point.member).first;
  }
  Member& member = found->second;
  const Told told{first, point.step, newest, point.ms};
  newest_ = std::max(newest_, point.step);
  ++version_;
  if (!member.steps && member.told.size() < kTold) return member.told.push_back(told);
  if (!member.steps) {
    member.steps.emplace();
    for (const Told& each : std::exchange(member.told, {})) member.steps->add(each);
  }
  member.steps->add(told);
}

void JobSeries::Steps::add(const Told& told) {
  if (told.first <= newest) means.cut(told.first - 1);
  newest = told.last;
  means.add_span(told.first, told.last, told.ms, told.newest);
}

template <typename Use>
void JobSeries::with_steps(const Member& member, Use use) {
  if (member.steps) return use(member.steps->means);
  Steps steps;
  for (const Told& each : member.told) steps.add(each);
  use(std::as_const(steps.means));
}

JobSeries::Points JobSeries::points(std::size_t most) const {
  Points points;
  if (newest_step_ < 0 || most == 0) return points;
  const std::size_t level = steps_.level_of(0, newest_step_, most);
  points.width = Step{1} << level;
  double step_before = kNotKnown, seconds_before = kNotKnown;
  for (Step column = 0; column <= newest_step_ >> level; ++column) {
    const double step = steps_.mean(level, column, 0), seconds = steps_.mean(level, column, 3);
    if (std::isnan(step)) continue;
    points.steps.push_back(column << level);
    points.loss.push_back(steps_.mean(level, column, 1));
    points.learning_rate.push_back(steps_.mean(level, column, 2));
    points.seconds.push_back(seconds);
    const double rate = (step - step_before) / (seconds - seconds_before);
    points.steps_per_second.push_back(std::isfinite(rate) && rate >= 0 ? rate : kNotKnown);
    step_before = step;
    seconds_before = seconds;
  }
  return points;
}

JobSeries::HeatMap JobSeries::heat_map(Step from, Step to, std::size_t columns) const {
  HeatMap map;
  from = std::max<Step>(from, 0);
  to = std::min(to, newest_);
  if (to < from || columns == 0) return map;
  std::vector<const Member*> rows;
  const auto add_row = [&](const std::string& name) {
    const auto found = members_.find(name);
    if (found == members_.end() || std::ranges::count(map.members, name) > 0) return;
    map.members.push_back(name);
    rows.push_back(&found->second);
  };
  for (const std::string& name : view_) add_row(name);
  map.ranks = map.members.size();
  for (const auto& [name, member] : members_) add_row(name);
  if (rows.empty()) return map;
  columns = std::clamp<std::size_t>(kCells / (rows.size() * kParts.size()), 1, columns);
  // The coarsest level that a row needs is that of all: where it is not the first one's, they are taken anew.
  std::size_t level = 0;
  for (std::size_t row = 0; row < rows.size();) {
    with_steps(*rows[row], [&](const Pyramid<float>& steps) {
      const std::size_t needed = steps.level_of(from, to, columns);
      if (map.steps.empty() || needed > level) {
        level = needed;
        map.steps.clear();
        for (Step column = from >> level; column <= to >> level; ++column)
          map.steps.push_back(column << level);
        for (std::vector<float>& ms : map.ms) {
          ms.clear();
          ms.reserve(rows.size() * map.steps.size());
        }
        if (std::exchange(row, 0) > 0) return;
      }
      for (std::size_t part = 0; part < kParts.size(); ++part) {
        for (const Step first : map.steps) map.ms[part].push_back(steps.mean(level, first >> level, part));
      }
      ++row;
    });
  }
  map.width = Step{1} << level;
  return map;
}

}  // namespace paceline::dashboard

#include "cli/plot/plot.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/text.h"
#include "cli/plot/chart.h"
#include "cli/plot/picture.h"

namespace paceline::cli {

namespace {

constexpr std::size_t kMaxMarked = 60;  // more points than this are drawn without dots

Chart loss_chart(const RunMetrics& metrics) {
  Chart chart{"Loss", "step", "loss"};
  Series training{"training"}, held_out{"test"};
  for (const StepPoint& p : metrics.steps) training.points.push_back({p.step, p.loss});
  for (const EvaluationPoint& p : metrics.evaluations) held_out.points.push_back({p.step, p.loss});
  held_out.marks = held_out.points.size() <= kMaxMarked;
  chart.series.push_back(std::move(training));
  if (!held_out.points.empty()) chart.series.push_back(std::move(held_out));
  return chart;
}

Chart accuracy_chart(const RunMetrics& metrics) {
  Chart chart{"Accuracy", "step", "correct"};
  Series test{"test"};
  for (const EvaluationPoint& p : metrics.evaluations) test.points.push_back({p.step, p.accuracy});
  test.marks = test.points.size() <= kMaxMarked;
  chart.series.push_back(std::move(test));
  return chart;
}

double mean_step(const std::vector<MemberPoint>& points) {
  double sum = 0;
  double count = 0;
  for (const MemberPoint& p : points) {
    if (!std::isfinite(p.step_ms)) continue;
    sum += p.step_ms;
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

Chart step_time_chart(const RunMetrics& metrics) {
  std::vector<std::string> names;
  for (const auto& [name, points] : metrics.members) names.push_back(name);
  const std::size_t all = names.size();
  std::string title = "Time of a step by member";
  if (all > kMaxPlottedMembers) {
    std::stable_sort(names.begin(), names.end(), [&](const std::string& a, const std::string& b) {
      return mean_step(metrics.members.at(a)) > mean_step(metrics.members.at(b));
    });
    names.resize(kMaxPlottedMembers);
    std::sort(names.begin(), names.end());
    title += str_cat(" (the ", kMaxPlottedMembers, " slowest of ", all, ")");
  }
  Chart chart{title, "step", "ms"};
  chart.from_zero = true;
  chart.cut_outliers = true;  // the first step compiles and warms up
  for (const std::string& name : names) {
    Series series{name};
    for (const MemberPoint& p : metrics.members.at(name)) series.points.push_back({p.step, p.step_ms});
    chart.series.push_back(std::move(series));
  }
  return chart;
}

}  // namespace

std::string plot_svg(const RunMetrics& metrics, std::string_view title) {
  std::vector<Chart> charts{loss_chart(metrics)};
  const bool accuracy = std::any_of(metrics.evaluations.begin(), metrics.evaluations.end(),
                                    [](const EvaluationPoint& p) { return std::isfinite(p.accuracy); });
  if (accuracy) charts.push_back(accuracy_chart(metrics));
  charts.push_back(step_time_chart(metrics));

  return picture(title, charts);
}

}  // namespace paceline::cli

#include <nlohmann/json.hpp>

#include "base/pluralize.h"
#include "base/text.h"
#include "cli/simulate/report.h"
#include "cli/view/terminal.h"

namespace paceline::cli {

namespace {

using simulation::BackupPoint;
using simulation::ModeResult;
using simulation::StragglerCase;

std::string percent(double part) {
  return str_cat(fixed(100 * part, 1), " %");
}

std::vector<std::string> cells(const ModeResult& mode, const ModeResult& synchronous) {
  const auto& staleness = mode.report.staleness;
  return {"  " + mode.mode.name,
          fixed(mode.report.step_ms(), 2),
          fixed(mode.gradients_per_ms, 3),
          fixed(mode.gradients_per_ms / synchronous.gradients_per_ms, 2),
          percent(mode.report.dropped_part()),
          percent(mode.report.waiting),
          fixed(staleness.mean(), 1),
          str_cat(staleness.max()),
          percent(mode.mode.batch())};
}

}  // namespace

std::string table_text(const std::vector<std::vector<std::string>>& rows) {
  std::vector<bool> right(rows.front().size(), true);
  right[0] = false;
  std::string text;
  for (const std::string& line : align_table(rows, right)) text += line + "\n";
  return text;
}

std::string stragglers_text(const StragglerCase& result) {
  std::string text = str_cat(pluralize(result.workers, "worker", "workers"), ", sigma ",
                             fixed(result.log_deviation, 2), ": the slowest of ", result.workers, " takes ",
                             fixed(result.slowest_ms, 2), " ms on average; ");
  text += result.best_backups == 0
              ? "no backup worker would help\n"
              : str_cat("best on paper are ", result.workers - result.best_backups, " + ",
                        pluralize(result.best_backups, "backup", "backups"), "\n");
  std::vector<std::vector<std::string>> rows = {
      {"  MODE", "STEP MS", "GRADIENTS/MS", "OF SYNC", "DROPPED", "WAITING", "STALENESS", "MAX", "BATCH"}};
  for (const ModeResult& mode : result.modes) rows.push_back(cells(mode, result.modes.front()));
  return text + table_text(rows);
}

std::string stragglers_json(const std::vector<StragglerCase>& results,
                            const simulation::StragglerOptions& options) {
  nlohmann::ordered_json json = {{"type", "stragglers"},
                                 {"seed", options.seed},
                                 {"steps", options.steps},
                                 {"mu", options.delays.log_mean},
                                 {"slowWorkers", options.delays.slow_workers},
                                 {"lateWorkersStop", options.late_workers_stop},
                                 {"cases", nlohmann::ordered_json::array()}};
  for (const StragglerCase& each : results) {
    nlohmann::ordered_json modes = nlohmann::ordered_json::array(), backups = nlohmann::ordered_json::array();
    for (const ModeResult& mode : each.modes) {
      modes.push_back({{"mode", mode.mode.name},
                       {"stepMs", mode.report.step_ms()},
                       {"gradientsPerMs", mode.gradients_per_ms},
                       {"ofSynchronous", mode.gradients_per_ms / each.modes.front().gradients_per_ms},
                       {"dropped", mode.report.dropped_part()},
                       {"waiting", mode.report.waiting},
                       {"meanStaleness", mode.report.staleness.mean()},
                       {"maxStaleness", mode.report.staleness.max()},
                       {"batch", mode.mode.batch()}});
    }
    for (const BackupPoint& point : each.backups) {
      backups.push_back({{"backups", point.backups},
                         {"onPaper", point.on_paper},
                         {"gradientsPerMs", point.gradients_per_ms}});
    }
    json["cases"].push_back({{"workers", each.workers},
                             {"sigma", each.log_deviation},
                             {"slowestMs", each.slowest_ms},
                             {"bestBackups", each.best_backups},
                             {"modes", modes},
                             {"backups", backups}});
  }
  return json.dump(2) + "\n";
}

std::vector<Chart> stragglers_charts(const std::vector<StragglerCase>& results) {
  std::vector<Chart> charts;
  const auto chart = [&](const std::string& title, const char* x, const char* y) -> Chart& {
    for (Chart& each : charts) {
      if (each.title == title) return each;
    }
    charts.push_back({title, x, y});
    charts.back().from_zero = true;
    return charts.back();
  };
  for (const StragglerCase& each : results) {
    Chart& rates =
        chart(str_cat("Useful gradients with backup workers, sigma ", fixed(each.log_deviation, 2)),
              "backup workers, part of all", "of synchronous");
    const std::string workers = pluralize(each.workers, "worker", "workers");
    Series paper{str_cat(workers, ", on paper")}, real{workers};
    const double synchronous = each.modes.front().gradients_per_ms;
    paper.points.push_back({0, 1});
    real.points.push_back({0, 1});
    for (const BackupPoint& point : each.backups) {
      const double part = static_cast<double>(point.backups) / each.workers;
      paper.points.push_back({part, point.on_paper / synchronous});
      real.points.push_back({part, point.gradients_per_ms / synchronous});
    }
    real.marks = true;
    rates.series.push_back(std::move(real));
    rates.series.push_back(std::move(paper));
  }
  for (const StragglerCase& each : results) {
    Chart& steps =
        chart(str_cat("Time of a step, ", pluralize(each.workers, "worker", "workers")), "sigma", "ms");
    for (std::size_t i = 0; i < each.modes.size(); ++i) {
      const simulation::Mode& mode = each.modes[i].mode;
      // With another sigma other backups are best: they are one line.
      const bool some = mode.spec.gradients_per_step() < mode.spec.workers();
      const std::string name = !some ? mode.name : mode.batch() < 1 ? "best b dropped" : "best b backups";
      Series* series = nullptr;
      for (Series& drawn : steps.series) {
        if (drawn.name == name) series = &drawn;
      }
      if (series == nullptr) series = &steps.series.emplace_back(Series{name, {}, true});
      series->points.push_back({each.log_deviation, each.modes[i].report.step_ms()});
    }
  }
  return charts;
}

}  // namespace paceline::cli

#include "recorded.h"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <set>

#include "cli/commands/straggler_replay.h"
#include "rules.h"

namespace paceline::detector {

namespace {

using Samples = std::vector<stragglers::StepSample>;

// Every step that all members have told of, or of a later one.
class Rows {
 public:
  explicit Rows(const std::vector<cli::RecordedStep>& steps) {
    for (const cli::RecordedStep& each : steps) told_[each.member].push_back(each.sample);
    for (const auto& [_, samples] : told_) next_ = std::max(next_, samples.front().step);
    next_ += stragglers::kWarmUp;
  }

  std::vector<std::string> members() const {
    std::vector<std::string> names;
    for (const auto& [name, _] : told_) names.push_back(name);
    return names;
  }

  // Empty: there are no more.
  Samples take() {
    Samples row;
    for (auto& [_, samples] : told_) {
      while (!samples.empty() && samples.front().step < next_) samples.pop_front();
      if (samples.empty()) return {};
      row.push_back(samples.front());
    }
    ++next_;
    return row;
  }
  Step newest() const { return next_ - 1; }

 private:
  std::map<std::string, std::deque<stragglers::StepSample>> told_;
  Step next_ = 0;
};

Calls ours(std::string_view metrics) {
  Calls found{.rule = "paceline"};
  for (const cli::Replay::Event& event : cli::replay_stragglers(metrics).events)
    found.calls.push_back({event.step, event.member, stragglers::kind_name(event.finding.kind), event.found});
  return found;
}

Calls of_rule(Rule& rule, Rows rows) {
  const std::vector<std::string> names = rows.members();
  Calls found{.rule = rule.name()};
  std::set<int> called;
  for (Samples row = rows.take(); !row.empty(); row = rows.take()) {
    const std::vector<int>& now = rule.add(row);
    const std::set<int> slow(now.begin(), now.end());
    const auto note = [&](int member, bool is_slow) {
      found.calls.push_back({rows.newest(), names[static_cast<std::size_t>(member)], "", is_slow});
    };
    for (const int member : called) {
      if (!slow.contains(member)) note(member, false);
    }
    for (const int member : slow) {
      if (!called.contains(member)) note(member, true);
    }
    called = slow;
  }
  return found;
}

}  // namespace

std::vector<Calls> judge_recording(std::string_view metrics) {
  const Rows rows(cli::recorded_steps(metrics));
  const int members = static_cast<int>(rows.members().size());
  if (members == 0) return {};
  std::vector<Calls> all = {ours(metrics)};
  for (const auto& make : {make_best_median, make_twice_median, make_step_time})
    all.push_back(of_rule(*make(members), rows));
  return all;
}

}  // namespace paceline::detector

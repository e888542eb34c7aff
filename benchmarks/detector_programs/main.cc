// bench_detector RULE NOISE FAULT MEMBERS SIGMA FACTOR RUNS STEPS SEED
//     generated traces (traces.h) through a rule (rules.h), as one line of JSON: in how many runs a member
//     was called slow behind the fault's begin, and was the right one; how many steps after; false alarms, of
//     which there is one at most for each member until it is called so no more; the job's hours
// bench_detector rate MEMBERS STEPS
//     steps of members, as heartbeats bring one each, that our detector takes in a second of processor time
// bench_detector recorded
//     the metrics.jsonl of a run, from standard input, through all rules (recorded.h): whom each calls slow,
//     and when it takes that back
//
// RULE, NOISE and FAULT are numbers, in the order of the headers.

#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "recorded.h"
#include "rules.h"
#include "traces.h"

namespace paceline::detector {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::unique_ptr<Rule> (*kRules[])(int) = {make_ours, make_best_median, make_twice_median,
                                                    make_step_time};

struct Tally {
  int found = 0, right = 0, false_alarms = 0;
  double hours = 0;
  std::vector<Step> steps;
  std::vector<std::string> findings;
};

void run(std::unique_ptr<Rule> rule, const Case& which, std::uint64_t seed, Step steps, Tally& tally) {
  Trace trace(which, seed);
  std::set<int> called;
  bool found = false;
  for (Step step = 1; step <= steps; ++step) {
    const std::vector<stragglers::StepSample>& samples = trace.next();
    const stragglers::StepSample& any = samples[0];
    tally.hours +=
        std::chrono::duration<double>(any.input + any.compute + any.update + any.wait + any.transfer)
            .count() /
        3600;
    const std::vector<int>& slow = rule->add(samples);
    const bool begun = step >= kOnset;
    std::erase_if(called, [&](int member) { return std::ranges::find(slow, member) == slow.end(); });
    const bool seeks = which.fault == Fault::kCompute || which.fault == Fault::kReader;
    for (const int member : slow) {
      if (seeks && begun && member == trace.culprit()) continue;
      if (called.insert(member).second) ++tally.false_alarms;
    }
    const bool names = std::ranges::find(slow, trace.culprit()) != slow.end();
    if (seeks && begun && !found && !slow.empty()) {
      found = true;
      ++tally.found;
      tally.right += slow.size() == 1 && names ? 1 : 0;
      tally.steps.push_back(step - kOnset + 1);
      tally.findings.push_back(rule->finding());
    }
    if (!seeks && which.fault != Fault::kNone && begun && !found && !rule->finding().empty()) {
      found = true;
      tally.findings.push_back(rule->finding());
      tally.steps.push_back(step - kOnset + 1);
    }
  }
}

int measure(char** words) {
  const auto number = [&](int i) { return std::atof(words[i]); };
  const int rule = std::atoi(words[0]);
  const Case which{.noise = static_cast<Noise>(std::atoi(words[1])),
                   .fault = static_cast<Fault>(std::atoi(words[2])),
                   .members = std::atoi(words[3]),
                   .sigma = number(4),
                   .factor = number(5)};
  const int runs = std::atoi(words[6]);
  const Step steps = std::atoll(words[7]);
  const auto seed = static_cast<std::uint64_t>(std::atoll(words[8]));
  Tally tally;
  for (int i = 0; i < runs; ++i)
    run(kRules[rule](which.members), which, seed + static_cast<std::uint64_t>(i), steps, tally);
  std::ranges::sort(tally.steps);
  std::map<std::string, int> findings;
  for (const std::string& each : tally.findings) ++findings[each];
  Json json = {{"rule", kRules[rule](which.members)->name()},
               {"noise", name(which.noise)},
               {"fault", name(which.fault)},
               {"members", which.members},
               {"sigma", which.sigma},
               {"factor", which.factor},
               {"runs", runs},
               {"steps", steps},
               {"found", tally.found},
               {"right", tally.right},
               {"falseAlarms", tally.false_alarms},
               {"jobHours", tally.hours},
               {"findings", findings}};
  if (!tally.steps.empty()) {
    json["stepsMedian"] = tally.steps[tally.steps.size() / 2];
    json["stepsP99"] = tally.steps[tally.steps.size() * 99 / 100];
  }
  std::cout << json.dump() << "\n";
  return 0;
}

double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

int rate(int members, Step steps) {
  Trace trace({.members = members}, 1);
  const auto rule = make_ours(members);
  double seconds = 0;
  for (Step step = 0; step < steps; ++step) {
    const auto& samples = trace.next();
    const double before = processor_seconds();
    rule->add(samples);
    seconds += processor_seconds() - before;
  }
  std::cout << Json({{"members", members},
                     {"perSecond", static_cast<double>(members) * static_cast<double>(steps) / seconds}})
                   .dump()
            << "\n";
  return 0;
}

int recorded() {
  const std::string metrics(std::istreambuf_iterator<char>(std::cin), {});
  Json rules = Json::array();
  for (const Calls& each : judge_recording(metrics)) {
    Json calls = Json::array();
    for (const Call& call : each.calls)
      calls.push_back(
          {{"step", call.step}, {"member", call.member}, {"finding", call.finding}, {"slow", call.slow}});
    rules.push_back({{"rule", each.rule}, {"calls", std::move(calls)}});
  }
  std::cout << rules.dump() << "\n";
  return 0;
}

}  // namespace
}  // namespace paceline::detector

int main(int count, char** words) {
  constexpr int kMeasureWords = 10, kRateWords = 4;
  if (count == kMeasureWords) return paceline::detector::measure(words + 1);
  if (count == kRateWords && std::string(words[1]) == "rate")
    return paceline::detector::rate(std::atoi(words[2]), std::atoll(words[3]));
  if (count == 2 && std::string(words[1]) == "recorded") return paceline::detector::recorded();
  std::cerr << "usage: see the head of benchmarks/detector_programs/main.cc\n";
  return 2;
}

#pragma once

// The steps that a run has recorded (metrics.jsonl), through the detector of stragglers once more: what it
// found, when, and how near each member is to being found now. Pure.

#include <string>
#include <string_view>
#include <vector>

#include "controller/stragglers/detector.h"

namespace paceline::cli {

struct RecordedStep {
  std::string member;  // "worker-0"
  stragglers::StepSample sample;
};

// Each step that a member told of and that is recorded, in the order of their lines. Others are passed over.
std::vector<RecordedStep> recorded_steps(std::string_view metrics);

struct Replay {
  struct Event {
    Step step = 0;       // the newest that was known
    std::string member;  // empty: all
    stragglers::Finding finding;
    bool found = true;  // else it is cleared
  };
  struct Member {
    std::string name;
    stragglers::Standing standing;
  };
  std::vector<Event> events;
  std::vector<Member> members;  // of the newest view, by rank
  Step first = 0, last = 0;     // steps that were recorded; 0: none
  bool knows = false;           // enough for a member that is slow to be found
};

// Lines that make no sense, or are of other types, are passed over. Before the first line of a view those
// members count that tell of steps before any of them tells of its second.
Replay replay_stragglers(std::string_view metrics);

std::vector<std::string> replay_lines(const Replay& replay);

}  // namespace paceline::cli

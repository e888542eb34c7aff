#pragma once

// These hold of slow members' replacements, whatever happens: one is under way at a time, and ends in time;
// no more than maxReplacements begin within windowSeconds; a place whose successor is as slow is left alone;
// what came of one is for good; and no pod is left that was to take over. The first breach is the world's
// failure.

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/api_server.h"
#include "tests/simulation/trace.h"

namespace paceline::simulation {

class HandoverChecks {
 public:
  HandoverChecks(Trace& trace, const ApiServer& api) : trace_(trace), api_(api) {}

  void on_status(const reconcile::StoredJob& before, const reconcile::StoredJob& after);
  // Faults have ended at `calm`.
  void at_calm(TimePoint now, TimePoint calm, const reconcile::StoredJob* job);
  static bool is_under_way(const reconcile::StoredJob& job);

  // It is to take over, or was.
  bool is_successor(const cluster::Pod& pod) const;
  // Another one takes its place, or has it, since it was slow.
  bool is_replaced(const std::string& job_uid, const std::string& pod) const;

  struct Counts {
    int begun = 0, done = 0;
  };
  Counts counts() const;

 private:
  struct Known {
    api::StragglerReplacement as_told;
    TimePoint since{};  // when the status told of it
  };
  void begins(const reconcile::StoredJob& job, const api::StragglerReplacement& replacement);

  Trace& trace_;
  const ApiServer& api_;
  std::map<std::pair<std::string, std::string>, Known> known_;  // by the job's uid and the successor
  std::map<std::string, TimePoint> doubled_;  // places with two pods although nobody is replaced
};

}  // namespace paceline::simulation

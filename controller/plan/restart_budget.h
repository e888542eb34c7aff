#pragma once

// A budget says how many restarts a job may still have: spec.runPolicy.backoffLimit in all, or, with
// restartWindowSeconds, of the last so many seconds. Their times stand in the status, as wall times, and
// outlive controllers. Pure.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "controller/api/types.h"

namespace paceline::plan {

inline constexpr std::size_t kMostRestartTimes =
    64;  // then the earliest two are kept as one, at the later's time

struct RestartBudget {
  std::int64_t used = 0, limit = 0;
  std::optional<Duration> window;
  // The next restart that counts is the job's end.
  bool is_used_up() const { return used >= limit; }
};

// The members' budget: restarts of all of them that are charged count.
RestartBudget restart_budget(const api::TrainingJob& job, const api::Restarts& restarts, WallTime now);
// The same of one place outside the ring, which was replaced `before` times since all pods began together.
RestartBudget restart_budget(const api::RunPolicy& policy, const std::vector<api::RestartTime>& times,
                             std::int64_t before, WallTime now);

// A charged restart is kept, where there is a window, and those before the window are forgotten.
void note_restart(const api::RunPolicy& policy, WallTime now, std::vector<api::RestartTime>& times);
// The one that was noted at `then` does not count after all.
void forget_restart(WallTime then, std::vector<api::RestartTime>& times);

// The clock went back: what seems to lie ahead was a moment ago, and nothing waits longer than `longest` for
// it. True: something has changed.
bool take_into_present(WallTime now, Duration longest, api::Restarts& restarts);

// Restarts of members that count, or that don't count, against backoffLimit, in all.
std::int64_t restarts_of_ring(const api::TrainingJob& job, const api::Restarts& restarts, bool charged);

// "; the members were started again 6 times already (spec.runPolicy.backoffLimit)"
std::string used_up(const RestartBudget& budget);
// "backoffLimit 6 in 24 h, 4 left"
std::string text_of(const RestartBudget& budget);

}  // namespace paceline::plan

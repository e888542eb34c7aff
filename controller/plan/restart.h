#pragma once

// Attempts begin and are counted here. Pure.

#include <cstdint>
#include <string>
#include <vector>

#include "controller/plan/plan.h"

namespace paceline::plan {

// A member's failure as the status will tell it: the fault's own words, and what the policy adds to them.
struct Failure {
  explicit Failure(api::Fault of);
  api::Fault fault;
  std::string reason, message;
};

// Whether a member with such a fault may start again. ExitCode: exit codes 1 to 127, what a member says of
// its own (no memory, a loss that is not finite, data that it can't read), a program that can't be started
// and a pod's own deadline are permanent; 128 and more, signals, silence and disruptions are not.
bool may_restart(api::RestartPolicy policy, api::RestartCause cause);
// Likewise; a process that ended well, and yet is missed, may.
bool may_restart(api::RestartPolicy policy, const api::Fault& fault);

// By the lost member's restart policy, the budget and the job's size: true: the next attempt begins. False:
// the job is to fail, and `failure` says why the member was not started again; unchanged where the policy is
// Never.
bool restart_by_policy(const Observed& observed, Failure& failure, Plan& plan);

// The same for one member, or with restartScope Role all of its role, while the others go on: their places
// have the next numbers in the status, and what is left of their pods goes; or the job fails. Nothing, where
// whether it may be replaced shows later. `age`: since its loss was known.
void replace(const Observed& observed, Failure failure, Duration age, Plan& plan);

// Whether members of this role start again while others go on, in a job without the native trainer: nobody
// waits for the others' word.
bool starts_in_place(const api::TrainingJob& job, Role role);
bool starts_in_place(const api::TrainingJob& job);
// The places that start again with this one, by the scope of its role.
std::vector<int> places_in_scope(const api::TrainingJob& job, Role role, int index);

// The place has the next number. Its next pod comes after the back-off, which is returned.
Duration take_next_number(const Observed& observed, Role role, int index, Plan& plan);
// " after 2.0 s", as it stays true; empty: at once.
std::string after(Duration wait);

// The job is lost by this member.
void end_by(const Observed& observed, Failure failure, Plan& plan);

// The members leave, with this grace, and the next attempt's come when they have. `role` and `cause` are
// counted.
void begin_attempt(const Observed& observed, Role role, api::RestartCause cause, const std::string& reason,
                   const std::string& message, Duration grace, Plan& plan);

// Numbers that were used are never used again: what follows a suspension, for all pods.
void skip_to_next_attempt(const api::TrainingJob& job, api::Restarts& restarts);

// By role and cause, and in all; a change of size is none of the restarts in all.
void count_restart(api::Restarts& restarts, Role role, api::RestartCause cause);
// One that was counted as `from` was `to`. REQUIRES: there is one.
void recount_restart(api::Restarts& restarts, Role role, api::RestartCause from, api::RestartCause to);

}  // namespace paceline::plan

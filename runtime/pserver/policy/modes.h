#pragma once

// The modes' constructors, for make_policy() alone. Arguments are checked there.

#include <memory>

#include "runtime/pserver/policy/policy.h"

namespace paceline::pserver {

// What all modes are told: workers >= 1, units_per_step >= 1, and a start whose units are of this job.
struct Setup {
  int workers = 1;
  std::int64_t units_per_step = 1;
  PolicyStart start;
};

std::unique_ptr<Policy> make_synchronous(const Setup& setup, std::int64_t gradients_per_step);
std::unique_ptr<Policy> make_asynchronous(const Setup& setup);
std::unique_ptr<Policy> make_bounded_staleness(const Setup& setup, std::int64_t staleness);

}  // namespace paceline::pserver

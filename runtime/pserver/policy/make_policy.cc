#include <limits>

#include "base/status.h"
#include "runtime/pserver/policy/modes.h"

namespace paceline::pserver {
namespace {

constexpr std::int64_t kMaxWorkers = 1 << 20;

absl::Status check_range(std::string_view field, std::int64_t value, std::int64_t low, std::int64_t high) {
  if (value >= low && value <= high) return absl::OkStatus();
  return absl::InvalidArgumentError(
      str_cat("parameter servers: ", field, " is ", value, "; allowed: ", low, " to ", high));
}

absl::Status check(const v1::ParameterServerSpec& spec, const PolicyStart& start) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  PL_RETURN_IF_ERROR(check_range("workers", spec.workers(), 1, kMaxWorkers));
  PL_RETURN_IF_ERROR(check_range("units per step", spec.units_per_step(), 1, kMaxWorkers));
  PL_RETURN_IF_ERROR(check_range("total steps", start.total_steps, 1, kMost / spec.units_per_step()));
  PL_RETURN_IF_ERROR(check_range("the first step", start.step, 0, start.total_steps));
  if (spec.synchronization() == v1::ParameterServerSpec::SYNCHRONOUS) {
    PL_RETURN_IF_ERROR(check_range("gradients per step", spec.gradients_per_step(), 1, spec.workers()));
    // Fewer units than gradients could never make an update.
    return check_range("units per step", spec.units_per_step(), spec.gradients_per_step(), spec.workers());
  }
  if (spec.synchronization() == v1::ParameterServerSpec::BOUNDED_STALENESS) {
    return check_range("staleness", spec.staleness(), 0, kMost / 2);
  }
  return absl::OkStatus();
}

bool well_formed(const UnitsApplied& units) {
  Unit least = 0;
  for (const Unit unit : units.missing) {
    if (unit < least || unit >= units.below) return false;
    least = unit + 1;
  }
  return units.below >= 0;
}

// Whether these units are those of `step` steps of this job.
bool fit(const UnitsApplied& units, const v1::ParameterServerSpec& spec, const PolicyStart& start) {
  const std::int64_t parts = spec.units_per_step();
  if (units.units_per_step != parts || units.below > start.total_steps * parts || !well_formed(units))
    return false;
  if (spec.synchronization() != v1::ParameterServerSpec::SYNCHRONOUS)
    return units.count() / parts == start.step;
  return units.count() == start.step * spec.gradients_per_step();  // whole updates
}

}  // namespace

absl::StatusOr<std::unique_ptr<Policy>> make_policy(const v1::ParameterServerSpec& spec,
                                                    const PolicyStart& start) {
  PL_RETURN_IF_ERROR(check(spec, start));
  Setup setup{static_cast<int>(spec.workers()), spec.units_per_step(), start};
  if (!fit(start.units, spec, start)) {
    setup.start.units = {.units_per_step = spec.units_per_step(),
                         .below = start.step * spec.units_per_step()};
  }
  switch (spec.synchronization()) {
    case v1::ParameterServerSpec::SYNCHRONOUS:
      return make_synchronous(setup, spec.gradients_per_step());
    case v1::ParameterServerSpec::ASYNCHRONOUS:
      return make_asynchronous(setup);
    case v1::ParameterServerSpec::BOUNDED_STALENESS:
      return make_bounded_staleness(setup, spec.staleness());
    default:
      return absl::InvalidArgumentError(
          str_cat("parameter servers: synchronization ", static_cast<int>(spec.synchronization()),
                  " is not known to this version; allowed: Synchronous, Asynchronous, BoundedStaleness"));
  }
}

ModeHolds holds_of(const v1::ParameterServerSpec& spec) {
  if (spec.synchronization() == v1::ParameterServerSpec::ASYNCHRONOUS) return {.put_aside = false};
  // Who must give a gradient of these weights to every update has read them before it.
  const bool lockstep = spec.synchronization() == v1::ParameterServerSpec::SYNCHRONOUS &&
                        spec.gradients_per_step() >= spec.workers();
  return {.older_weights = !lockstep, .put_aside = !lockstep};
}

}  // namespace paceline::pserver

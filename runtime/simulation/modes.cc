#include "runtime/simulation/modes.h"

#include <cstdio>

#include "base/text.h"

namespace paceline::simulation {

namespace {
Mode make(std::string name, int workers, v1::ParameterServerSpec::Synchronization synchronization,
          int gradients, int units) {
  Mode mode{std::move(name), {}};
  mode.spec.set_synchronization(synchronization);
  mode.spec.set_workers(workers);
  mode.spec.set_gradients_per_step(gradients);
  mode.spec.set_units_per_step(units);
  return mode;
}
}  // namespace

double Mode::samples_per_gradient() const {
  return static_cast<double>(spec.workers()) / static_cast<double>(spec.units_per_step());
}

double Mode::batch() const {
  if (spec.synchronization() != v1::ParameterServerSpec::SYNCHRONOUS) return 1;
  return static_cast<double>(spec.gradients_per_step()) / static_cast<double>(spec.units_per_step());
}

Mode synchronous(int workers) {
  return make("synchronous", workers, v1::ParameterServerSpec::SYNCHRONOUS, workers, workers);
}

Mode with_backups(int workers, int backups) {
  const int needed = workers - backups;
  return make(str_cat(needed, " + ", backups, " backups"), workers, v1::ParameterServerSpec::SYNCHRONOUS,
              needed, needed);
}

Mode dropping(int workers, int dropped) {
  const int needed = workers - dropped;
  return make(str_cat("first ", needed, " of ", workers), workers, v1::ParameterServerSpec::SYNCHRONOUS,
              needed, workers);
}

Mode bounded(int workers, int staleness) {
  Mode mode = make(str_cat("bounded, staleness ", staleness), workers,
                   v1::ParameterServerSpec::BOUNDED_STALENESS, workers, workers);
  mode.spec.set_staleness(staleness);
  return mode;
}

Mode asynchronous(int workers) {
  return make("asynchronous", workers, v1::ParameterServerSpec::ASYNCHRONOUS, workers, workers);
}

Mode delay_compensated(int workers, double lambda) {
  Mode mode = asynchronous(workers);
  char text[64];
  std::snprintf(text, sizeof(text), "asynchronous, lambda %g", lambda);
  mode.name = text;
  mode.spec.set_delay_compensation(lambda);
  return mode;
}

std::vector<Mode> modes_to_compare(int workers, int backups, const std::vector<int>& staleness) {
  std::vector<Mode> modes = {synchronous(workers)};
  if (backups > 0) {
    modes.push_back(with_backups(workers, backups));
    modes.push_back(dropping(workers, backups));
  }
  for (const int bound : staleness) modes.push_back(bounded(workers, bound));
  modes.push_back(asynchronous(workers));
  return modes;
}

}  // namespace paceline::simulation

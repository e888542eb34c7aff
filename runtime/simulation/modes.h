#pragma once

// The modes that a study compares, with their numbers. Pure.

#include <string>
#include <vector>

#include "proto/paceline/v1/training.pb.h"

namespace paceline::simulation {

struct Mode {
  std::string
      name;  // "synchronous", "96 + 4 backups", "first 96 of 100", "bounded, staleness 3", "asynchronous"
  v1::ParameterServerSpec spec;
  // Samples of a gradient, where a synchronous step's N gradients have 1 each and a global batch is N
  // samples.
  double samples_per_gradient() const;
  // Samples of a step, as a part of the global batch.
  double batch() const;
};

Mode synchronous(int workers);
Mode with_backups(int workers, int backups);
Mode dropping(int workers, int dropped);
Mode bounded(int workers, int staleness);
Mode asynchronous(int workers);
Mode delay_compensated(int workers, double lambda);

// What a study compares: the synchronous mode first, then, where `backups` > 0, so many backup workers and so
// many dropped without, bounded staleness of each of `staleness`, and the asynchronous mode.
std::vector<Mode> modes_to_compare(int workers, int backups, const std::vector<int>& staleness);

}  // namespace paceline::simulation

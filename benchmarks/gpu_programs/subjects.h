#pragma once

// The kernels of a GPT-2's step, each as something to measure.

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "benchmarks/gpu_programs/gpu_bench.h"

namespace paceline::cuda {

struct Libraries;

struct Subjects {
  std::shared_ptr<Libraries> libraries;  // what the subjects call
  std::vector<Subject> all;              // the first is a plain copy
};

// Their memory is the bench's, which outlives them.
absl::StatusOr<Subjects> make_subjects(Bench& bench, const Options& options);

}  // namespace paceline::cuda

#pragma once

// Sizes of a model with which a GPU's tensor cores do badly. Pure.

#include <string>

#include "proto/paceline/v1/training.pb.h"

namespace paceline::trainer {

// For the log of a run on a GPU: sizes of products in bf16 that are no multiples of 8, by their fields, and
// the next that are. Empty: there are none.
std::string odd_sizes_warning(const v1::TrainingSpec& spec);

}  // namespace paceline::trainer

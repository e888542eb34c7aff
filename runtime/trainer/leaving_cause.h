#pragma once

// The kind of an error of this member, by which the coordinator decides whether another start may help. Pure.

#include "absl/status/status.h"
#include "proto/paceline/v1/coordinator.pb.h"

namespace paceline::trainer {

// RESOURCE_EXHAUSTED: memory, of the host or of a device. OUT_OF_RANGE: the loss or the gradient is not
// finite. DATA_LOSS: samples or a checkpoint can't be read. All others: OTHER.
v1::Leaving::Cause leaving_cause(const absl::Status& error);

}  // namespace paceline::trainer

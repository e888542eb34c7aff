#pragma once

// Schedules run on symbols: a tensor's value is the text of the operation that made it and of its operands'
// values. So two schedules can be compared whose operations are others, or stand elsewhere. Operations that
// are two in one (join.h) are taken apart.

#include <string>
#include <vector>

#include "runtime/tensor/schedule.h"

namespace paceline::tensor {

// What `operation` consists of, in order: two operations where it is a joined one, else itself. What one
// hands to the other and is nowhere else is tensor kBetween.
inline constexpr TensorId kBetween = -2;
std::vector<Operation> parts_of(const Operation& operation);

// By the names of their kinds.
std::vector<std::string> kinds_of(const std::vector<Operation>& operations);

// What the schedule leaves outside of the arena, in the order of its making. It is an error of the test where
// an operation reads what is not there, or makes again what is.
std::vector<std::string> left_by(const Schedule& schedule);

}  // namespace paceline::tensor

#pragma once

// Passes of a program in tests where a device's error is a failure.

#include <gtest/gtest.h>

#include <cstdint>

#include "runtime/tensor/program.h"

namespace paceline::tensor {

inline ForwardResult forward(Program& program, std::int64_t rows) {
  const absl::StatusOr<ForwardResult> result = program.forward(rows);
  EXPECT_TRUE(result.ok()) << result.status();
  return result.value_or(ForwardResult{});
}

inline void backward(Program& program, float scale, bool accumulate, const Program::OnReady& on_ready) {
  const absl::Status status = program.backward(scale, accumulate, on_ready);
  EXPECT_TRUE(status.ok()) << status;
}

}  // namespace paceline::tensor

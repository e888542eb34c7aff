#pragma once

#include <gtest/gtest.h>

// Declares `name`, an absl::StatusOr with a value: where the expression gives an error, the test fails and
// its function returns.
#define PL_ASSERT_OK(name, ...)    \
  const auto name = (__VA_ARGS__); \
  ASSERT_TRUE(name.ok()) << name.status()

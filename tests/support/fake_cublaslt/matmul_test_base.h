#pragma once

// What tests of matrix products on the emulated GPU share: the library of the tests, opened, and the check at
// the end that nothing of it is left.

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

#include "runtime/cuda/cublaslt.h"
#include "tests/support/fake_cublaslt/fake_cublaslt.h"
#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/support/paths.h"

namespace paceline::cuda {

inline fake_cublaslt::FakeCublasLt& fake_library() {
  static const auto get = [] {
    const std::array names{binary_path(PACELINE_FAKE_CUBLASLT)};
    return reinterpret_cast<fake_cublaslt::Get>(
        must(must(SharedObject::open(names)).find(fake_cublaslt::kGet)));
  }();
  return *get();
}

class MatMulTestBase : public GpuTest {
 protected:
  MatMulTestBase() {
    if (!on_real_gpu()) fake_library().reset();
    library_ = must(CublasLt::open(context_, on_real_gpu() ? "" : binary_path(PACELINE_FAKE_CUBLASLT)));
  }
  ~MatMulTestBase() override {
    if (!on_real_gpu()) fake_library().reset();
  }
  void TearDown() override {
    library_.reset();
    if (!on_real_gpu()) {
      EXPECT_EQ(fake_library().objects(), 0U);
    }
    GpuTest::TearDown();
  }

  std::shared_ptr<const CublasLt> library_;
};

}  // namespace paceline::cuda

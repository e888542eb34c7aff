#include <gtest/gtest.h>

#include "runtime/tensor/gpu/gpu_device.h"
#include "tests/support/fake_cuda/gpu_test.h"
#include "tests/support/paths.h"
#include "tests/unit/runtime/tensor/trial.h"

namespace paceline::tensor {

// Few multiprocessors: threads go on in strides, and fewer of them are emulated.
std::unique_ptr<Device> make_test_device() {
  const bool real = cuda::on_real_gpu();
  if (!real) cuda::fake().control().multiprocessors = 1;
  auto device = open_gpu_device({.ordinal = 0,
                                 .driver = cuda::test_driver(),
                                 .cublaslt = real ? "" : binary_path(PACELINE_FAKE_CUBLASLT)});
  if (!device.ok()) {
    ADD_FAILURE() << device.status();
    std::abort();
  }
  return *std::move(device);
}

}  // namespace paceline::tensor

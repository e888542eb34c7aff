#include "runtime/tensor/cpu/cpu_device.h"
#include "tests/unit/runtime/tensor/trial.h"

namespace paceline::tensor {

std::unique_ptr<Device> make_test_device() {
  return make_cpu_device({});
}

}  // namespace paceline::tensor

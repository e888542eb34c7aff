#pragma once

// A libcuda.so.1 of the tests: the driver's calls over this process's own memory, in the order in which they
// are made (every stream is done at once). A test opens it by its path and sets it by control(), which the
// library exports as paceline_fake_cuda.

#include <cuda.h>

#include <cstddef>
#include <functional>
#include <string>

namespace paceline::fake_cuda {

struct Control {
  int version = 13000;  // cuDriverGetVersion
  CUresult init = CUDA_SUCCESS;
  int devices = 1;
  std::size_t memory_bytes = std::size_t{1} << 30;  // of each device
  // Asked before every call but the above: what is not CUDA_SUCCESS is its result, and nothing is done.
  std::function<CUresult(const std::string& call)> fail;
};

}  // namespace paceline::fake_cuda

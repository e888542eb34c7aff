#include "base/cuda_build.h"

#include <unistd.h>

#include "base/text.h"

namespace paceline {

bool built_with_cuda() {
#if defined(PACELINE_WITH_CUDA)
  return true;
#else
  return false;
#endif
}

bool has_nvidia_gpu(const std::string& devices) {
  constexpr int kMaxGpus = 64;
  for (int i = 0; i < kMaxGpus; ++i) {
    if (::access(str_cat(devices, "/nvidia", i).c_str(), F_OK) == 0) return true;
  }
  return false;
}

absl::Status without_cuda(bool gpu_is_there) {
  if (!gpu_is_there) return absl::NotFoundError("this program was built without CUDA");
  return absl::FailedPreconditionError(
      "this program was built without CUDA; build it with CUDA (scripts/setup --cuda, PACELINE_CUDA=ON "
      "scripts/build), or run the image paceline/runtime-cuda; PACELINE_DEVICE=cpu says that processors are "
      "meant");
}

}  // namespace paceline

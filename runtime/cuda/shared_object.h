#pragma once

// A library that is opened while the program runs, because not every machine has it: NVIDIA's driver, NVML,
// NCCL, cuBLASLt. It is never closed: what it has started in this process (threads, handlers) may outlive us.

#include <memory>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/status.h"

namespace paceline::cuda {

class SharedObject {
 public:
  // The first of these names, or paths, that can be opened. NOT_FOUND where none is there, with the loader's
  // words for each; FAILED_PRECONDITION where one is there and can't be loaded (another architecture, a
  // library that it needs).
  static absl::StatusOr<SharedObject> open(std::span<const std::string> names);

  // FAILED_PRECONDITION, with the symbol and the path: the library is older than what we were built for.
  absl::StatusOr<void*> find(const char* symbol) const;
  // The same, as a function of that type.
  template <typename Call>
  absl::Status find(const char* symbol, Call& call) const {
    PL_ASSIGN_OR_RETURN(void* const found, find(symbol));
    call = reinterpret_cast<Call>(found);
    return absl::OkStatus();
  }
  // As the loader found it; the name that was asked for where it does not say.
  const std::string& path() const { return path_; }

 private:
  SharedObject(void* handle, std::string path) : handle_(handle), path_(std::move(path)) {}

  void* handle_;
  std::string path_;
};

}  // namespace paceline::cuda

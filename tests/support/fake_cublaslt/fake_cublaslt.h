#pragma once

// A libcublasLt.so.13 of the tests, that a test opens by its path: products of fp32 and bf16 matrices in the
// memory and the streams of tests/support/fake_cuda, summed in fp32 in the order of k, rounded once; biases,
// and GELU with what it keeps, as epilogues (of fp32 sums, as they were before they are rounded). It refuses
// what the real one refuses: a handle without a context, layouts that are no matrices, types that no
// algorithm takes, a workspace that is too small, addresses that are not aligned as was promised.
// Thread-safe.

#include <cublasLt.h>

#include <cstddef>
#include <functional>
#include <string>

namespace paceline::fake_cublaslt {

struct Control {
  std::size_t version = 130002;
  std::size_t workspace_bytes = 1024;  // that its algorithm asks for
  // Asked before every call: what is not CUBLAS_STATUS_SUCCESS is its result, and nothing is done.
  std::function<cublasStatus_t(const std::string& call)> fail;
  bool finds_algorithms = true;
  bool finds_gelu = true;  // algorithms for epilogues with GELU
};

class FakeCublasLt {
 public:
  virtual Control& control() = 0;
  // Handles, descriptors, layouts and preferences that are there now.
  virtual std::size_t objects() = 0;
  virtual std::size_t products() = 0;  // that were asked for
  // As when it was loaded; what is still there is forgotten.
  virtual void reset() = 0;

 protected:
  ~FakeCublasLt() = default;
};

// The library exports this.
using Get = FakeCublasLt* (*)();
inline constexpr char kGet[] = "paceline_fake_cublaslt";

}  // namespace paceline::fake_cublaslt

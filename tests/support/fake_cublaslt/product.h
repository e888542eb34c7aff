#pragma once

// A matrix product as cuBLASLt describes it, and as the library of the tests computes it: one sum of floats
// for each value, in order, and the epilogues that it knows.

#include <cublasLt.h>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace paceline::fake_cublaslt {

struct Layout {
  cudaDataType_t type;
  std::uint64_t rows, columns;  // column-major
  std::int64_t leading;

  std::size_t element() const { return type == CUDA_R_16BF ? 2 : 4; }
  // From the first element to behind the last.
  std::size_t bytes() const {
    return (static_cast<std::uint64_t>(leading) * (columns - 1) + rows) * element();
  }
};
struct Description {
  cublasOperation_t first = CUBLAS_OP_N, second = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  cudaDataType_t bias_type = CUDA_R_32F;
  void* aux = nullptr;  // of d's type
  std::int64_t aux_leading = 0;

  bool biased() const {
    return epilogue == CUBLASLT_EPILOGUE_BIAS || epilogue == CUBLASLT_EPILOGUE_GELU_BIAS ||
           epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  }
  bool activates() const {
    return epilogue == CUBLASLT_EPILOGUE_GELU || epilogue == CUBLASLT_EPILOGUE_GELU_BIAS || keeps();
  }
  bool keeps() const {
    return epilogue == CUBLASLT_EPILOGUE_GELU_AUX || epilogue == CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
  }
  bool derives() const { return epilogue == CUBLASLT_EPILOGUE_DGELU; }
  bool has_aux() const { return keeps() || derives(); }
};

// Of op(a) [m, k] and op(b) [k, n] to c [m, n], column-major; 0: they do not fit.
struct Sizes {
  std::uint64_t m = 0, n = 0, k = 0;
};
Sizes sizes_of(const Description& d, const Layout& a, const Layout& b, const Layout& c);

// d = epilogue(alpha * op(a) * op(b) + beta * d). REQUIRES: they fit, and lie where they say.
struct Product {
  Description d;
  Layout a, b, c;
  const void *from_a, *from_b;
  void* to;
  float alpha, beta;

  void operator()() const;
};

}  // namespace paceline::fake_cublaslt

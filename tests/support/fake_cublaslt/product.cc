#include "tests/support/fake_cublaslt/product.h"

#include <cmath>

#include "base/dtype.h"

namespace paceline::fake_cublaslt {

namespace {

// GPT-2's tanh form, as cuBLAS has it.
float slope_root(float x) {
  return 0.7978845608F * (x + 0.044715F * x * x * x);
}
float gelu(float x) {
  return 0.5F * x * (1 + std::tanh(slope_root(x)));
}
float gelu_slope(float x) {
  const float t = std::tanh(slope_root(x));
  return 0.5F * (1 + t) + 0.5F * x * (1 - t * t) * 0.7978845608F * (1 + 3 * 0.044715F * x * x);
}

float load(const void* data, cudaDataType_t type, std::uint64_t at) {
  if (type == CUDA_R_32F) return static_cast<const float*>(data)[at];
  return static_cast<float>(static_cast<const BFloat16*>(data)[at]);
}
void store(void* data, cudaDataType_t type, std::uint64_t at, float value) {
  if (type == CUDA_R_32F) {
    static_cast<float*>(data)[at] = value;
  } else {
    static_cast<BFloat16*>(data)[at] = BFloat16(value);
  }
}

// lines[r][k] of an operand whose element (row, column) is op(...)'s (r, k), or (k, r).
void gather(const void* from, const Layout& l, bool r_is_row, std::uint64_t lines, std::uint64_t k_count,
            std::vector<float>& to) {
  const auto leading = static_cast<std::uint64_t>(l.leading);
  for (std::uint64_t r = 0; r < lines; ++r) {
    for (std::uint64_t k = 0; k < k_count; ++k)
      to[r * k_count + k] = load(from, l.type, r_is_row ? k * leading + r : r * leading + k);
  }
}

}  // namespace

Sizes sizes_of(const Description& d, const Layout& a, const Layout& b, const Layout& c) {
  const bool ta = d.first == CUBLAS_OP_T, tb = d.second == CUBLAS_OP_T;
  const Sizes sizes{ta ? a.columns : a.rows, tb ? b.rows : b.columns, ta ? a.rows : a.columns};
  const bool fits = (tb ? b.columns : b.rows) == sizes.k && c.rows == sizes.m && c.columns == sizes.n;
  return fits ? sizes : Sizes{};
}

void Product::operator()() const {
  const Sizes sizes = sizes_of(d, a, b, c);
  std::vector<float> x(sizes.m * sizes.k), y(sizes.k * sizes.n);  // row-major op(a), column-major op(b)
  gather(from_a, a, d.first == CUBLAS_OP_N, sizes.m, sizes.k, x);
  gather(from_b, b, d.second == CUBLAS_OP_T, sizes.n, sizes.k, y);
  for (std::uint64_t n = 0; n < sizes.n; ++n) {
    for (std::uint64_t m = 0; m < sizes.m; ++m) {
      float sum = 0;
      for (std::uint64_t k = 0; k < sizes.k; ++k) sum += x[m * sizes.k + k] * y[n * sizes.k + k];
      const std::uint64_t at = n * static_cast<std::uint64_t>(c.leading) + m;
      float value = alpha * sum;
      if (beta != 0) value += beta * load(to, c.type, at);
      if (d.biased()) value += load(d.bias, d.bias_type, m);
      const std::uint64_t at_aux = n * static_cast<std::uint64_t>(d.aux_leading) + m;
      if (d.keeps()) store(d.aux, c.type, at_aux, value);
      if (d.activates()) value = gelu(value);
      if (d.derives()) value *= gelu_slope(load(d.aux, c.type, at_aux));
      store(to, c.type, at, value);
    }
  }
}

}  // namespace paceline::fake_cublaslt

#include "runtime/tensor/graph_dims.h"

#include <algorithm>

#include "base/text.h"

namespace paceline::tensor {

namespace {
// Of one array: far beyond any model that fits a machine, and far from overflow.
constexpr std::int64_t kMaxElements = std::int64_t{1} << 40;
}  // namespace

std::string dims_text(const Dims& dims) {
  std::string text = "{";
  for (std::size_t i = 0; i < dims.size(); ++i) text += str_cat(i == 0 ? "" : ", ", dims[i]);
  return text + "}";
}

std::int64_t element_count(const Dims& dims) {
  std::int64_t n = 1;
  for (const auto d : dims) n *= d;
  return n;
}

std::string fault_of(const Dims& dims) {
  if (dims.empty() || std::ranges::any_of(dims, [](std::int64_t d) { return d < 1; }))
    return str_cat("dims ", dims_text(dims), " must be positive and not empty");
  std::int64_t n = 1;
  for (const auto d : dims) {
    if (d > kMaxElements / n)
      return str_cat("an array of dims ", dims_text(dims), " is too large: it may have at most ",
                     kMaxElements, " elements");
    n *= d;
  }
  return "";
}

}  // namespace paceline::tensor

#include "runtime/tensor/graph_dims.h"

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

bool sane(const Dims& dims) {
  if (dims.empty()) return false;
  std::int64_t n = 1;
  for (const auto d : dims) {
    if (d < 1 || d > kMaxElements / n) return false;
    n *= d;
  }
  return true;
}

}  // namespace paceline::tensor

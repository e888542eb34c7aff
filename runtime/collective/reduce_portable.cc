// The oracle: one element at a time, and every rule of reduce.h spelled out.

#include <type_traits>

#include "base/dtype.h"
#include "runtime/collective/reduce_loops.h"

namespace paceline::collective {
namespace {

template <typename Float>
Float quiet(Float value) {
  if constexpr (sizeof(Float) == 4) {
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(value) | 0x00400000u);
  } else {
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(value) | 0x0008000000000000u);
  }
}

// Memory holds `Element`; arithmetic is done in `Work`.
template <typename Element, typename Work>
struct ScalarLanes {
  using Vector = Work;
  static constexpr std::size_t kBytes = sizeof(Element);
  static constexpr bool kFloat = std::is_floating_point_v<Work>;

  static Vector load(const std::byte* from) {
    Element element;
    std::memcpy(&element, from, kBytes);
    return static_cast<Work>(element);
  }
  static void store(std::byte* to, Vector value) {
    const auto element = static_cast<Element>(value);
    std::memcpy(to, &element, kBytes);
  }
  static void stream(std::byte* to, Vector value) { store(to, value); }

  static Vector sum(Vector a, Vector b) {
    if constexpr (kFloat) {
      // The language lets a compiler swap the operands of +, and the hardware's NaN then is the other one.
      if (a != a) return quiet(a);
      if (b != b) return quiet(b);
      return a + b;
    } else {
      using Unsigned = std::make_unsigned_t<Work>;
      return static_cast<Work>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
    }
  }
  static Vector min(Vector a, Vector b) {
    if (a != a) return a;
    if (b != b) return b;
    return b < a ? b : a;
  }
  static Vector max(Vector a, Vector b) {
    if (a != a) return a;
    if (b != b) return b;
    return b > a ? b : a;
  }
  static Vector divide(Vector a, int divisor) {
    if constexpr (kFloat) {
      if (a != a) return quiet(a);
    }
    return a / static_cast<Work>(divisor);
  }
};

}  // namespace

const ReduceTable kReducePortable = {
    {row_of<ScalarLanes<float, float>>(), row_of<ScalarLanes<double, double>>(),
     row_of<ScalarLanes<BFloat16, float>>(), row_of<ScalarLanes<Float16, float>>(),
     row_of<ScalarLanes<std::int32_t, std::int32_t>>(), row_of<ScalarLanes<std::int64_t, std::int64_t>>()}};

}  // namespace paceline::collective

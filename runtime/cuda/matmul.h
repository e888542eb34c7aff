#pragma once

// One product of matrices of fixed shapes on the GPU, by cuBLASLt: planned once, then run without allocating
// anything.
//
// All matrices are row-major: c[m, n] = a[m, k] b[k, n] (+ c) (+ bias[n] on every row). An operand may be
// stored transposed, a as [k, m], b as [n, k]. (cuBLASLt's are column-major: what it is given is the
// transposed product, c' = b' a', whose operands in its order are the same bytes.) GELU is a part of a
// product where cuBLASLt has that, so that its operand is not written and read again: GPT-2's tanh form, of
// the sum before it is rounded. A NaN reaches what depends on it: there is no comparison in it.
//
// Deterministic: the same bits from run to run on one kind of GPU with one version of cuBLASLt. Sums that are
// split over blocks are joined in a workspace, in a fixed order, and never in place by whoever comes first.

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/dtype.h"
#include "runtime/cuda/cublaslt.h"
#include "runtime/cuda/stream.h"

namespace paceline::cuda {

struct Product {
  std::int64_t m = 0, n = 0, k = 0;  // above 0
  bool a_transposed = false;
  bool b_transposed = false;
  DType inputs = DType::kF32;  // of a and b: kF32 or kBF16; sums are fp32, without TF32
  DType output = DType::kF32;  // of c: the inputs', or kF32
  bool bias = false;           // of c's type
  // Without accumulating. `aux` is [m, n], of c's type.
  enum class Gelu : std::uint8_t {
    kNone,
    kForward,         // c = gelu(a b (+ bias))
    kForwardKeeping,  // and aux = a b (+ bias)
    kBackward,        // c = a b times the derivative of gelu at aux; no bias
  };
  Gelu gelu = Gelu::kNone;
};

// What an algorithm may take at most; on Hopper cuBLAS's own choice.
inline constexpr std::size_t kMostWorkspace = std::size_t{32} << 20;

class MatMul {
 public:
  // INVALID_ARGUMENT: types or sizes; UNIMPLEMENTED: cuBLASLt has no algorithm for it, with the product in
  // words (of aux it takes no n but multiples of 8).
  static absl::StatusOr<MatMul> plan(std::shared_ptr<const CublasLt> library, const Product& product);
  MatMul(MatMul&&) noexcept;
  ~MatMul();

  // Of memory that run() needs; 0: none.
  std::size_t workspace_bytes() const;

  struct Operands {
    const void* a = nullptr;
    const void* b = nullptr;
    void* c = nullptr;
    const void* bias = nullptr;
    void* aux = nullptr;  // kForwardKeeping writes it, kBackward reads it
    void* workspace = nullptr;
    bool accumulate = false;  // to what c holds
  };
  // Adds it to the stream. Addresses are 16-byte aligned (the workspace 256). One thread at a time.
  absl::Status run(Stream& stream, const Operands& operands);

 private:
  struct Parts;
  explicit MatMul(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace paceline::cuda

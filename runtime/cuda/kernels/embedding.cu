// Rows of tables by number, and their gradients without atomics: rows of dy are added to a token's gradient
// in their order, as the plan says that the host made (runtime/cuda/embedding_plan.h). A frequent token's
// rows are cut into pieces, summed side by side and then joined in order.

#include "runtime/cuda/kernels/embedding_params.h"
#include "runtime/cuda/kernels/portable.h"
#include "runtime/cuda/kernels/reduce.h"

namespace paceline::cuda {
namespace {

constexpr std::uint32_t kAtOnce = 4;  // rows that a thread has on their way together

template <typename T, int kWidth>
PL_DEVICE void embed(const EmbeddingParams& p) {
  const std::uint32_t vectors = p.width / kWidth;
  const std::size_t all = static_cast<std::size_t>(p.rows) * vectors;
  for (std::size_t i = thread_of_grid(); i < all; i += threads_of_grid()) {
    const auto r = static_cast<std::uint32_t>(i / vectors),
               column = static_cast<std::uint32_t>(i % vectors) * kWidth;
    const std::int32_t token = p.tokens[r];
    float y[kWidth];
    if (token < 0 || static_cast<std::uint32_t>(token) >= p.vocabulary) {
#pragma unroll
      for (int k = 0; k < kWidth; ++k) y[k] = NAN;
    } else {
      load<kWidth>(static_cast<const T*>(p.table) + static_cast<std::size_t>(token) * p.width + column, y);
      if (p.positions != nullptr) {
        float position[kWidth];
        load<kWidth>(
            static_cast<const T*>(p.positions) + static_cast<std::size_t>(r % p.time) * p.width + column,
            position);
#pragma unroll
        for (int k = 0; k < kWidth; ++k) y[k] += position[k];
      }
    }
    store<kWidth>(static_cast<T*>(p.y) + static_cast<std::size_t>(r) * p.width + column, y);
  }
}

template <int kWidth>
PL_DEVICE void add_to(float* at, const float (&x)[kWidth]) {
  float sum[kWidth];
  load<kWidth>(at, sum);
#pragma unroll
  for (int k = 0; k < kWidth; ++k) sum[k] += x[k];
  store<kWidth>(at, sum);
}

// `order`: the numbers of the piece's rows, in shared memory, so that no load waits for another one.
template <typename T, int kWidth>
PL_DEVICE void sum_piece(const EmbeddingPiecesParams& p, const EmbeddingPiece& piece,
                         const std::uint32_t* order) {
  const std::uint32_t rows = piece.end - piece.begin;
  for (std::uint32_t column = threadIdx.x * kWidth; column < p.width; column += blockDim.x * kWidth) {
    float total[kWidth] = {};
    const T* const dy = static_cast<const T*>(p.dy) + column;
    for (std::uint32_t r = 0; r < rows; r += kAtOnce) {
      add_vectors<kAtOnce>(total, rows - r, [&](std::uint32_t i) {
        return dy + static_cast<std::size_t>(order[r + i]) * p.width;
      });
    }
    if (piece.slot < 0) {
      add_to<kWidth>(p.gradient + static_cast<std::size_t>(piece.token) * p.width + column, total);
    } else {
      store<kWidth>(p.partials + static_cast<std::size_t>(piece.slot) * p.width + column, total);
    }
  }
}

template <typename T, int kWidth>
PL_DEVICE void sum_pieces(const EmbeddingPiecesParams& p) {
  __shared__ std::uint32_t order[kMostPieceRows];
  const std::uint32_t count = p.counts->pieces;
  for (std::uint32_t i = blockIdx.x; i < count; i += gridDim.x) {
    const EmbeddingPiece piece = p.pieces[i];
    for (std::uint32_t r = threadIdx.x; r < piece.end - piece.begin; r += blockDim.x)
      order[r] = p.order[piece.begin + r];
    __syncthreads();
    sum_piece<T, kWidth>(p, piece, order);
    __syncthreads();
  }
}

}  // namespace

#define PL_ALL_ROWS(name, Params, function)                  \
  PL_KERNEL(kEmbeddingThreads, name##_f32, Params, p) {      \
    function<float, kWide<float>>(p);                        \
  }                                                          \
  PL_KERNEL(kEmbeddingThreads, name##_bf16, Params, p) {     \
    function<Bf16, kWide<Bf16>>(p);                          \
  }                                                          \
  PL_KERNEL(kEmbeddingThreads, name##_any_f32, Params, p) {  \
    function<float, 1>(p);                                   \
  }                                                          \
  PL_KERNEL(kEmbeddingThreads, name##_any_bf16, Params, p) { \
    function<Bf16, 1>(p);                                    \
  }

PL_ALL_ROWS(embed, EmbeddingParams, embed)
PL_ALL_ROWS(embed_pieces, EmbeddingPiecesParams, sum_pieces)

PL_KERNEL(kEmbeddingThreads, embed_join, EmbeddingJoinParams, p) {
  const std::uint32_t count = p.counts->joins;
  for (std::uint32_t i = blockIdx.x; i < count; i += gridDim.x) {
    const EmbeddingJoin join = p.joins[i];
    for (std::uint32_t column = threadIdx.x; column < p.width; column += blockDim.x) {
      float total = 0;
      for (std::uint32_t slot = join.first; slot < join.end; ++slot)
        total += p.partials[static_cast<std::size_t>(slot) * p.width + column];
      p.gradient[static_cast<std::size_t>(join.token) * p.width + column] += total;
    }
  }
}

}  // namespace paceline::cuda
